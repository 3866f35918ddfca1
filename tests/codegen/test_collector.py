"""The collector comes less often during builds, also of several threads, and afterwards as it did before."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Iterator
from weakref import ref

import numpy as np
import pytest

import symad as sa
from codegen.collector import SELDOM, fewer_collections, imports


@pytest.fixture(autouse=True)
def _threshold() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_builds_raise_the_threshold_and_restore_it() -> None:
    seen = []

    def f(x):
        seen.append(gc.get_threshold())
        return np.sum(x * x)

    sa.compile(sa.hessian(f), np.ones(3), cache=False)
    assert seen[0] == (SELDOM, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)

    def wrong(x):
        raise KeyError(gc.get_threshold())

    with pytest.raises(KeyError, match=str(SELDOM)):
        sa.plan(wrong, np.ones(3))
    assert gc.get_threshold() == (700, 10, 10)


def test_the_last_of_several_threads_restores_it() -> None:
    inside, first_done = threading.Event(), threading.Event()

    def other() -> None:
        with fewer_collections():
            inside.set()
            first_done.wait(10)

    thread = threading.Thread(target=other)
    with fewer_collections():
        thread.start()
        assert inside.wait(10)
    assert gc.get_threshold() == (SELDOM, 10, 10)
    first_done.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [0, 10 * SELDOM])
def test_a_threshold_that_is_off_or_higher_is_left(own: int) -> None:
    gc.set_threshold(own, 7, 7)
    with fewer_collections():
        assert gc.get_threshold() == (own, 7, 7)
    assert gc.get_threshold() == (own, 7, 7)


def test_what_is_set_meanwhile_stays() -> None:
    with fewer_collections():
        gc.set_threshold(1234, 5, 5)
    assert gc.get_threshold() == (1234, 5, 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_has_the_threshold_of_before() -> None:
    with fewer_collections(), fewer_collections(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*JAX is multithreaded", RuntimeWarning)  # another test may have imported it
        child = os.fork()
        if not child:
            as_before = gc.get_threshold() == (700, 10, 10)
            with fewer_collections():
                raised = gc.get_threshold() == (SELDOM, 10, 10)
            os._exit(0 if as_before and raised and gc.get_threshold() == (700, 10, 10) else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert gc.get_threshold() == (700, 10, 10)


def test_what_imports_make_is_not_looked_through_again() -> None:
    with imports():
        made = [[k] for k in range(3000)]
    young = set(map(id, gc.get_objects(generation=0)))
    assert not any(id(each) in young for each in made)


def test_garbage_of_the_time_of_an_import_is_found() -> None:
    class Kept:
        def __init__(self) -> None:
            self.itself = self

    gone = ref(Kept())
    with imports():
        pass
    gc.collect()
    assert gone() is None


def test_what_the_user_has_frozen_or_turned_off_stays_so() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with imports():
            pass
        assert gc.get_freeze_count() == before > 0
    finally:
        gc.unfreeze()
    gc.disable()
    try:
        with imports():
            made = [[k] for k in range(3000)]
        young = set(map(id, gc.get_objects(generation=0)))
        assert id(made[-1]) in young
        assert not gc.isenabled()
    finally:
        gc.enable()
