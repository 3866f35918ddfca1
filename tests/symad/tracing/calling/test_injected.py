"""An interrupt, or no memory, at any line of symad: the user's module is as it was, and the next call is right."""

import pytest

from tests.support.injected import CALLS, damages, damages_of_signals

EVERY = 151  # lines; prime, so that other lines are tried after a change


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_damaged(name, error):
    assert list(damages(name, error, EVERY)) == []


@pytest.mark.wide
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_damaged_at_every_line(name):
    assert list(damages(name)) == []


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_damaged_by_signals(name):
    assert list(damages_of_signals(name, 10)) == []
