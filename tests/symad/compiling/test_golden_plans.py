"""The plans of thirty functions are those of tests/plans: a changed threshold shows as a difference."""

from __future__ import annotations

import pytest

from tests.golden_plans import FOLDER, PLANS, text_of


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_is_the_one_that_was_accepted(name):
    """To accept what has changed: python -m tests.golden_plans --accept."""
    assert text_of(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_kept_plan_is_of_a_function():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PLANS)
    assert len(PLANS) == 30
