"""Random programs on arrays, loops and nested derivatives, drawn and shrunk by Hypothesis; always the same ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.draws import drawn
from tests.support.fuzzers import FUZZERS

EXAMPLES = {"arrays": 16, "arrays-odd": 20, "bodies": 12, "bodies-native": 4, "words": 3}


@pytest.mark.parametrize("name", EXAMPLES)
def test_random_programs_are_right(name: str) -> None:
    fuzzer = FUZZERS[name]

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=EXAMPLES[name],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn(fuzzer.make))
    def holds(case: object) -> None:
        fuzzer.check(case)

    holds()
