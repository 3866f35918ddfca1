"""Random programs on arrays, loops and nested derivatives, drawn and shrunk by Hypothesis; always the same ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.draws import drawn
from tests.support.fuzzers import FUZZERS
from tests.support.fuzzing import campaign

EXAMPLES = {
    "arrays": 5, "arrays-odd": 10, "arrays-merged": 6, "arrays-large": 4, "bodies": 10, "bodies-native": 3, "words": 2,
    "steps": 6, "labels": 20,
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.wide_rows("arrays-large")
def test_random_programs_are_right(name: str) -> None:
    fuzzer = FUZZERS[name]

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=EXAMPLES[name],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn(fuzzer.make).map(lambda program: program.made))
    def holds(case: object) -> None:
        fuzzer.check(case)

    holds()


@pytest.mark.parametrize(
    ("name", "count", "outcome"), [("bodies", 16, "as loops"), ("arrays", 6, "right"), ("arrays-large", 4, "as loops")]
)
@pytest.mark.thinned
def test_most_programs_are_what_they_are_for(name: str, count: int, outcome: str) -> None:
    done = campaign(name, FUZZERS[name], range(count), shrink=False)
    assert not done.failures
    assert done.outcomes[outcome] >= count / 4
