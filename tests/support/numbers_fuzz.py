"""Random programs on arrays, called on numbers: array nodes against operations on each element, and against NumPy.

The programs are those of `large_fuzz`; "large" is what each draws. `python -m tests.fuzz arrays-numbers 1000`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import symad as sa
from symad.derivatives import array_arithmetic, level, modes
from symad.derivatives.kept_traces import KeptTraces
from symad.tracing.control import array_graph
from symad.tracing.numpy import solve
from tests.support.arrays_fuzz import LARGEST, REFUSED, SAME, Numbers, near, odd_points, plain, points, quietly
from tests.support.draws import SEEDS
from tests.support.fuzzing import cause, counted
from tests.support.large_fuzz import STEEP, Case, case_of, flat, last_digits, oracles, transform_of

THIRD = "gradient along the gradient"
ROUNDED = 1e-12  # of sums in another order


@contextmanager
def array_nodes(least: int | None) -> Iterator[None]:
    """Let operations on so many elements be array nodes; None: on none."""
    with ExitStack() as stack:
        if least is None:
            stack.enter_context(patch.object(level, "_suits_arrays", lambda arguments: False))
        else:
            for module, name in ((array_graph, "LEAST"), (array_arithmetic, "LEAST"), (solve, "FACTORIZED")):
                stack.enter_context(patch.object(module, name, least))
            stack.enter_context(patch.object(modes, "FEW", -1))  # dense matrices are made of them always
        yield


def check(text: str) -> str:
    """Compare array nodes with operations on each element, and with differences; AssertionError where they differ."""
    case = case_of(text)
    with quietly():
        given = points(case.size, case.seed)
        right = [x for x in given if (value := plain(case.f, x)) is not None and abs(value) < LARGEST]
        if not right:
            return "without numbers"
        v = np.random.default_rng(case.seed + SEEDS).uniform(-1, 1, case.size)
        outcomes = [_checked(name, case, right[:2], v) for name in (*case.modes, THIRD)]
        _check_kept(case, [*right, *odd_points(case.size, case.seed)])
    return next((outcome for outcome in outcomes if outcome), "right")


def _checked(name: str, case: Case, right: list[Numbers], v: Numbers) -> str:
    """Compare one mode; what refused it, or nothing."""
    transform, least = _transform_of(name, case, v), case.large[0]
    for x in odd_points(case.size, case.seed) if name == "odd" else right:
        found, wanted = (_result(transform, x, how) for how in (least, None))
        if isinstance(wanted, str) and ("LimitError" in wanted or "no scalar form" in wanted):
            return wanted  # operations on each element take too long, or there are none
        if isinstance(found, str) or isinstance(wanted, str):
            assert type(found) is type(wanted), f"{name}: {found} with array nodes, {wanted} without, at {x.tolist()}"
            return str(found)
        counted(f"{name}, each element")
        if not near(found, wanted, SAME):
            steep = -1.0 if name == "odd" else STEEP * last_digits(transform, x, wanted)
            assert np.all(np.abs(found - wanted) <= steep), f"{name}: {found} and not {wanted}, at {x.tolist()}"
            counted(f"{name}, decided by the last digits of the point")
        if name not in ("odd", THIRD):
            with array_nodes(least):
                for wrong in oracles(name, case.f, x, v, found):
                    raise AssertionError(f"{wrong}, at {x.tolist()}")
    return ""


def _check_kept(case: Case, given: list[Numbers]) -> None:
    """Compare calls of one gradient, which keeps its trace, with those of others: to the bit, or as sums may differ."""
    gradient, called = sa.value_and_grad(case.f), KeptTraces.gradient
    answers = list[Any]()
    with patch.object(KeptTraces, "gradient", lambda *args: answers.append(called(*args)) or answers[-1]):
        for x in (given[0], *given):
            found = _result(lambda x: gradient(x), x, case.large[0])
            wanted = _result(lambda x: sa.value_and_grad(case.f)(x), x, case.large[0])
            if "LimitError" in f"{found}{wanted}":
                return  # seconds are limited
            if isinstance(found, str) or isinstance(wanted, str):
                assert str(found) == str(wanted), f"{found}, and {wanted} at the first call, at {x.tolist()}"
            else:
                if np.array_equal(found, wanted, equal_nan=True):
                    continue
                steep = STEEP * last_digits(sa.value_and_grad(case.f), x, wanted)
                right = near(found, wanted, ROUNDED) or np.all(np.abs(found - wanted) <= steep)
                assert right, f"{found}, and {wanted} at the first call, at {x.tolist()}"
                counted("kept, with other last digits")
    for answer in answers[2::2]:
        counted("run again" if answer is None else "kept")


def _result(transform: Callable[[Numbers], Any], x: Numbers, least: int | None) -> Numbers | str:
    try:
        with array_nodes(least):
            return flat(transform(x.copy()))
    except REFUSED as error:
        return f"refused: {cause(error)}"
    except (ValueError, FloatingPointError, ZeroDivisionError) as error:
        return f"raised: {type(error).__name__}"


def _transform_of(name: str, case: Case, v: Numbers) -> Callable[[Numbers], Any]:
    f = case.f
    if name in ("odd", "value"):
        return lambda x: sa.value_and_grad(f)(x)[0]
    if name == THIRD:
        return sa.grad(lambda x: np.sum(sa.hvp(f, (x,), (v,)) * v))
    return transform_of(name, f, v)
