"""Random programs, their derivatives by every route, and oracles that know no derivative at all.

A program is the text of a Python function of one array, and a point. It runs in two worlds. In the first, `D`, `GRAD`,
`JVP`, `VJP` and `HESS` inside it are symad's transforms. In the second they are central differences, and the outer
derivatives are central differences too, all at 220 digits: no rule, no level and no linear map is used there.

`python -m tests.fuzz nested 300` checks many.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import mpmath
import numpy as np

import symad as sa
from codegen.evaluation.interpret import evaluate
from symad.classroom.verification.verify import exact_values
from symad.compiling.native import carry_out
from tests.support.draws import Draw
from tests.support.fuzz_programs import SIZE, Body, program_text
from tests.support.fuzzing import counted
from tests.support.mixes import HESSIAN_MODES

DIGITS = 220  # second differences inside second differences leave 70 of them
INNER, OUTER = 25, 15  # steps 10**-25 inside programs, 10**-15 around them: errors of 1e-50 and 1e-30
LARGEST = 1e6  # programs with larger values are left out: their last digits mean nothing
EXACT_TOLERANCE = 1e-12  # a derivative that does not depend on the outer level is folded in float64
TOLERANCE = 1e-8  # of float64, relative to the largest entry or intermediate value
STEP = [0.0, 0.0]  # step of the second world and its shift to one side; traced values while it is traced

GRADIENTS: dict[str, Callable[..., Any]] = {"grad": sa.grad, "jacfwd": sa.jacfwd, "jacrev": sa.jacrev}
QUICK_ROUTES = 4  # of the eleven of `routes`, when not all are checked
OPTIONS = [(tier, fma) for tier in ("llvm", "fast") for fma in (True, False)]


def _difference(f: Any, a: Any) -> Any:
    return _moved(f, a, 1)


def _moved(f: Any, a: Any, v: Any) -> Any:
    step, shift = STEP
    return (f(a + (shift + 1) * step * v) - f(a + (shift - 1) * step * v)) / (2 * step)


def _gradient(f: Any, a: Any) -> Any:
    return np.stack([_moved(f, a, unit) for unit in np.eye(SIZE)])


def _hessian(f: Any, a: Any) -> Any:
    return np.stack([_moved(lambda b: _gradient(f, b), a, unit) for unit in np.eye(SIZE)])


WORLDS: dict[str, dict[str, Any]] = {
    "symad": {
        "D": lambda f, a: sa.derivative(f)(a),
        "DR": lambda f, a: sa.grad(f)(a),
        "D2": lambda f, a: sa.derivative(f, order=2)(a),
        "GRAD": lambda f, a: sa.grad(f)(a),
        "JVP": lambda f, a, v: sa.jvp(f, (a,), (v,))[1],
        "LIN": lambda f, a, v: sa.linearize(f, a)[1](v),
        "VJP": lambda f, a, w: sa.vjp(f, a)[1](w)[0],
        "HESS": lambda f, a: sa.hessian(f)(a),
        "HVP": lambda f, a, v: sa.hvp(f, (a,), (v,)),
    },
    "differences": {
        "D": _difference,
        "DR": _difference,
        "D2": lambda f, a: _difference(lambda b: _difference(f, b), a),
        "GRAD": _gradient,
        "JVP": _moved,
        "LIN": _moved,
        "VJP": lambda f, a, w: _gradient(lambda b: (f(b) * w).sum(), a),
        "HESS": _hessian,
        "HVP": lambda f, a, v: _moved(lambda b: _gradient(f, b), a, v),
    },
}


def load(text: str, name: str, world: str) -> Callable[..., Any]:
    """Return the function `f` of a program in one of the worlds; its lines appear in tracebacks."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np, **WORLDS[world]}
    exec(compile(text, name, "exec"), names)
    return names["f"]


def make(draw: Draw, kind: type[Body] = Body) -> str:
    """A random program and a point, as text."""
    text = program_text(draw, kind)
    return f"{text}\n\nX = {[draw.real(-1.5, 1.5) for _ in range(SIZE)]}\n"


def point_of(text: str) -> Any:
    """The point of a program."""
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    return np.array(names["X"])


def oracle(text: str, name: str, x: Any) -> tuple[Any, Any, Any]:
    """Value, gradient and Hessian by central differences at 220 digits, as object arrays of mpmath numbers."""
    f = load(text, name, "differences")

    def stepped(x: Any, *steps: Any) -> Any:
        STEP[:] = steps
        return f(x)

    traced = sa.trace(stepped, x, 1.0, 0.0)
    names = traced.inputs.flat

    def at(point: Any, shift: int = 0) -> Any:
        values = dict(zip(names, [*point, mpmath.mpf(10) ** -INNER, shift], strict=True))
        return evaluate(traced.graph, traced.outputs.flat, values, arithmetic="reference", digits=DIGITS)[0]

    with mpmath.workdps(DIGITS):
        h = mpmath.mpf(10) ** -OUTER
        start = np.array([mpmath.mpf(value) for value in x.tolist()], dtype=object)
        units = [np.array([h * (k == j) for k in range(SIZE)], dtype=object) for j in range(SIZE)]
        value, up, down = at(start), [at(start + u) for u in units], [at(start - u) for u in units]
        if abs(value - at(start, 3)) > EXACT_TOLERANCE:
            raise ZeroDivisionError("a derivative inside the program is asked for at a jump")
        gradient = np.array([(a - b) / (2 * h) for a, b in zip(up, down, strict=True)])
        matrix = np.empty((SIZE, SIZE), dtype=object)
        for i, u in enumerate(units):
            matrix[i, i] = (up[i] - 2 * value + down[i]) / h**2
            for j, v in enumerate(units[:i]):
                both = at(start + u + v) + at(start - u - v) - at(start + u - v) - at(start - u + v)
                matrix[i, j] = matrix[j, i] = both / (4 * h**2)
    return value, gradient, matrix


def check(text: str, *, complete: bool = True, done: Counter[str] | None = None) -> str:
    """Check one program by all routes and compiler options, or by a few; AssertionError that lists what is wrong."""
    name, x = f"<program {hash(text)}>", point_of(text)
    try:
        right = oracle(text, name, x)
    except (ZeroDivisionError, OverflowError):
        return "not finite, or at a jump"
    if not all(mpmath.isfinite(v) and abs(v) < LARGEST for part in right for v in np.ravel(part)):
        return "not finite, or at a jump"
    choose, done = None if complete else Random(text), Counter() if done is None else done
    found = list(problems(load(text, name, "symad"), x, right, done, choose))
    assert not found, "; ".join(found)
    return "right"


def problems(f: Any, x: Any, right: Any, done: Counter[str], choose: Random | None) -> Iterator[str]:
    """Yield what is wrong with one program's derivatives at a point; `choose` takes some of the routes."""
    every = list(routes(f, right))
    for route, transform, wanted in every if choose is None else choose.sample(every, QUICK_ROUTES):
        exact = exact_values(sa.trace(transform, x), (x,))
        scale = max([1.0, *[abs(float(v)) for v in np.ravel(wanted)]])
        done["checks"] += 1
        counted(f"{route}, 50 digits")
        worst = max(abs(float(a - b)) for a, b in zip(exact, np.ravel(wanted), strict=True))
        if not worst <= EXACT_TOLERANCE * scale:
            yield f"{route}, 50 digits: off by {worst:g}"
            continue
        found = {"interpreted": transform(x)}
        for tier, fma in OPTIONS if choose is None else choose.choices(OPTIONS, k=choose.randrange(2)):
            found[f"{tier}, fma={fma}"] = carry_out(sa.plan(transform, x), tier=tier, fma=fma)(x)
        for how, numbers in found.items():
            done["checks"] += 1
            counted(f"{route}, {how}")
            worst = float(np.max(np.abs(np.ravel(numbers) - np.array([float(v) for v in exact]))))
            if not worst <= TOLERANCE * scale:
                yield f"{route}, {how}: off by {worst:g} of {scale:g}"
    modes = ("edge", "dyadic", "auto")
    for mode in modes if choose is None else choose.sample(modes, 1):
        yield from pattern_problems(f, x, right[2], done, mode)


def routes(f: Any, right: Any) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Yield the value, the gradients and the Hessians of a function with what is right for each."""
    value, gradient, matrix = right
    yield "value", f, [value]
    for name, transform in GRADIENTS.items():
        yield name, transform(f), gradient
    for mode in HESSIAN_MODES:
        yield f"hessian {mode}", sa.hessian(f, mode=mode), matrix


def pattern_problems(f: Any, x: Any, matrix: Any, done: Counter[str], mode: Any) -> Iterator[str]:
    """Yield entries that are not zero and not in the sparsity pattern, or that differ from the right ones."""
    done["checks"] += 1
    counted(f"sparsity, {mode}")
    sparse = sa.hessian(f, mode=mode, sparse="full")(x)
    present = set(zip(sparse.rows.tolist(), sparse.columns.tolist(), strict=True))
    missing = [place for place in np.ndindex(SIZE, SIZE) if abs(matrix[place]) > 1e-18 and place not in present]
    if missing:
        yield f"sparsity {mode}: no entries {missing}"
    scale = max([1.0, *[abs(float(v)) for v in np.ravel(matrix)]])
    if not np.max(np.abs(sparse.toarray() - matrix.astype(float))) <= TOLERANCE * scale:
        yield f"sparsity {mode}: wrong entries {sparse.toarray().tolist()}"
