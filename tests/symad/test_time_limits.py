"""Limits of time nest: the earlier end counts, and the outer limit goes on after the inner block."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import time
import weakref

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


def test_a_limit_that_was_lost_comes_again():
    """An exception in what the garbage collector calls, or in a bare `except`, ends there, and the block goes on."""

    def lost():
        with time_limit(0.05, "all of it"):
            with contextlib.suppress(LimitError):
                wait(5.0)
            wait(5.0)

    start = time.monotonic()
    with pytest.raises(LimitError, match="all of it"):
        lost()
    assert time.monotonic() - start < 4.0


def test_a_limit_does_not_strike_in_a_callback_of_a_reference(monkeypatch):
    """An exception there would be printed, and lost; the limit arrives when the callback has ended."""
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)

    class Kept:
        pass

    def _on_collected(gone):
        wait(0.3)

    def collects():
        with time_limit(0.05, "all of it"):
            kept = Kept()
            reference = weakref.ref(kept, _on_collected)
            del kept
            assert reference() is None
            wait(5.0)

    with pytest.raises(LimitError, match="all of it"):
        collects()
    assert printed == []


def test_what_cleans_up_is_not_interrupted_again():
    cleaned = []

    def cleans_up():
        with time_limit(0.05, "all of it"):
            try:
                wait(5.0)
            finally:
                wait(0.5)
                cleaned.append(1)

    with pytest.raises(LimitError, match="all of it"):
        cleans_up()
    assert cleaned == [1]


def test_a_limit_holds_while_another_is_handled():
    try:
        with time_limit(0.05, "the first"):
            wait(5.0)
    except LimitError:
        with pytest.raises(LimitError, match="the second"), time_limit(0.05, "the second"):
            wait(5.0)


class Slow:
    def __del__(self):
        wait(0.2)


def collected(phase, info):
    if phase == "start":
        wait(0.2)


@pytest.mark.parametrize("leave", [lambda: Slow() and None, gc.collect], ids=["__del__", "a callback of the collector"])
def test_a_limit_waits_where_python_ignores_errors(leave):
    """There an error would be printed, and the block go on: hypothesis has such a callback, in every test."""

    def lost():
        with time_limit(0.05, "all of it"):
            leave()
            wait(5.0)

    gc.callbacks.append(collected)
    try:
        with pytest.raises(LimitError, match="all of it"):
            lost()
    finally:
        gc.callbacks.remove(collected)


def test_a_time_that_is_over_at_once_leaves_no_timer() -> None:
    """The alarm may come before the block begins: the handler and the timer of before are put back."""
    before = signal.getsignal(signal.SIGALRM)
    for _ in range(20):
        with pytest.raises(LimitError, match="took longer than 1e-09 s"), time_limit(1e-9, "it"):
            time.sleep(1.0)
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
        assert signal.getsignal(signal.SIGALRM) == before
