"""Limits of time nest: the earlier end counts, and the outer limit goes on after the inner block."""

from __future__ import annotations

import signal
import time

import pytest

from symad.errors import LimitError
from symad.limits import time_limit


def wait(seconds):
    """Sleep in short pieces: a signal arrives between two of them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.005)


def test_the_outer_limit_goes_on_after_an_inner_block():
    def both():
        with time_limit(0.15, "outer"):
            with time_limit(10.0, "inner"):
                pass
            wait(5.0)

    with pytest.raises(LimitError, match="outer"):
        both()


def test_an_inner_block_does_not_outlive_the_outer_limit():
    start = time.monotonic()
    with (
        pytest.raises(LimitError, match=r"outer took longer than 0\.1 s"),
        time_limit(0.1, "outer"),
        time_limit(9, "in"),
    ):
        wait(5.0)
    assert time.monotonic() - start < 4.0


def test_the_inner_limit_ends_its_block_only():
    with time_limit(10.0, "outer"):
        with pytest.raises(LimitError, match="inner"), time_limit(0.05, "inner"):
            wait(5.0)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 5.0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
