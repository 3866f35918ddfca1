"""The reachable state of functions: whether it has changed, and how to put it back."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any

import numpy as np

from symad.errors import TraceError
from symad.reach.object_classes import RANDOM
from symad.reach.reach_trails import Obstacle, Trail
from symad.reach.reach_walk import ReachWalk


class ReachableState:
    """The state that functions and objects can reach. It is complete if `unknown` is empty.

    >>> scale = 2.0
    >>> state = ReachableState(lambda x: x * scale)
    >>> state.unknown, state.unchanged()
    ([], True)
    >>> scale = 3.0
    >>> state.unchanged(), state.differences()
    (False, {'scale': 'a global name'})

    `restores`: it is put back after the body of a loop. `left` are the ids of arrays that may change; arrays of more
    than `largest` bytes are not compared.
    """

    def __init__(
        self, *roots: Any, restores: bool = False, left: Collection[int] = (), largest: float = math.inf
    ) -> None:
        walk = ReachWalk(roots, restores=restores, left=left, largest=largest)
        self._state, self._caches = walk.state, walk.caches
        if restores:
            shared = Trail(RANDOM, None, "", "")
            state, legacy = random.getstate(), np.random.get_state()
            walk.ask(_state_of_python, RANDOM, shared, lambda _: random.setstate(state))
            walk.ask(legacy_state, RANDOM, shared, lambda _: np.random.set_state(legacy))
        self.unknown: list[Obstacle] = walk.unknown
        self.effects: list[Obstacle] = walk.effects
        self.asks: bool = any(effect.asks for effect in walk.effects)  # the world for something
        self.functions: list[FunctionType] = walk.functions
        self.runs_out: bool = walk.runs_out
        self.keeps_results: bool = walk.keeps_results
        self.bytes: int = walk.state.bytes
        self.unchanged: Callable[[], bool] = walk.state.unchanged
        self.only_written: Callable[[], set[int]] = walk.only_written

    def differences(self, left: Collection[int] = ()) -> dict[str, str]:
        """Return the changed state: what it is, by its global name, or by itself if it has none.

        Lists and sets whose ids are in `left` do not count.
        """
        return {
            part.name or part.what: part.what
            for part in self._state.different()
            if part.owner is None or id(part.owner) not in left
        }

    def changed(self, where: str) -> str:
        """Return what has changed, "" for nothing; TraceError for something global, which others may change too."""
        different = list(self._state.different())
        for part in different:
            if part.name:
                raise TraceError(
                    f"the body of a loop changes {part.name}",
                    where=where,
                    why="a body is traced once for all repetitions, and global names are not put back",
                    do="return what the body computes; or make it a variable of the function around the loop; or "
                    'compile with roll="never"',
                )
        return different[0].what if different else ""

    def changed_owners(self) -> list[Any] | None:
        """Return the containers with changed contents; None if anything else has changed."""
        parts = list(self._state.different())
        return None if any(part.owner is None or part.name for part in parts) else [part.owner for part in parts]

    def restore(self, where: str = "") -> None:
        """Put the state back; TraceError if cached results would be lost."""
        for cache, before in self._caches:
            if cache.cache_info().misses != before.misses:
                if before.currsize:
                    raise TraceError(
                        f"the body of a loop calls {cache.__name__}, which keeps its results, and changes something",
                        where=where,
                        why="the body is carried out again for each repetition, and what was kept cannot be told apart",
                        do='leave functools.cache out, or the change; or compile with roll="never"',
                    )
                cache.cache_clear()
        for part in self._state.different():
            if part.put_back is None and not part.name:
                raise TraceError(
                    f"what is called for the second time has changed {part.what}",
                    where=where,
                    why="it cannot be put back as it was",
                    do='leave the change out; or compile with roll="never"',
                )
            if not part.name and part.put_back is not None:
                part.put_back(part.before)


def _state_of_python() -> tuple[Any, ...]:
    """Return the state of Python's random generator; as bytes it is compared quickly."""
    version, numbers, gauss = random.getstate()
    return version, array("L", numbers).tobytes(), gauss


def legacy_state() -> tuple[Any, ...]:
    """Return the state of the random generator behind NumPy's functions."""
    kind, state, *rest = np.random.get_state(legacy=True)
    return kind, np.asarray(state).tobytes(), *rest


def generator_states() -> tuple[Any, ...]:
    """Return the states of the random generators that all code shares."""
    return _state_of_python(), *legacy_state()


def reached_functions(f: Any, most: float = math.inf) -> tuple[tuple[FunctionType, ...], bool]:
    """Return the Python functions of the user's that a function may call; whether these are all.

    The walk ends where it has met the `most` of them.

    >>> double = lambda x: 2 * x
    >>> functions, complete = reached_functions(lambda x: double(np.sin(x)))
    >>> double in functions, len(functions), complete
    (True, 2, True)
    """
    walk = ReachWalk([f], most=most)
    return tuple(walk.functions), not walk.unknown


def functions_around(f: Any) -> list[FunctionType]:
    """Return the functions that a function calls by name, itself included, and those of libraries around them."""
    walk = ReachWalk([f])
    return [*walk.functions, *walk.closures]
