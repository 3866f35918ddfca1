"""Random programs on large arrays, whose operations are written down as loops: by every route, against NumPy's numbers.

"Large" is a number of elements that each program draws, so that small arrays are large too; some have true sizes.
`python -m tests.fuzz arrays-large 1000`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

import codegen.loops.roll
import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from symad.compiling import candidates
from symad.compiling.native import compile_rolled
from symad.tracing.control import array_graph, array_loops
from symad.tracing.numpy import solve
from tests.support import array_forms as forms
from tests.support.arrays_fuzz import (
    LARGEST,
    REFUSED,
    SAME,
    SCOPE,
    SMOOTH,
    TOLERANCE,
    Numbers,
    Text,
    near,
    odd_points,
    plain,
    points,
    quietly,
)  # fmt: skip
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import cause, counted
from tests.support.rolling_fuzz import rolled_of
from tests.support.source_texts import execute

Way = tuple[str, Callable[[Numbers], Numbers]]
STEPS = (1e-3, 5e-4)
PLACES_OF = (
    *((array_loops, name) for name in ("LARGE", "SMALL", "SHORT", "NARROW")),
    (array_graph, "PRODUCTS"),
    (solve, "LOOPED"),
)
NATIVE = 4  # one of so many programs becomes kernels
SECONDS = 20.0  # for one transform
TRUE_SIZES = (4096, 4900, 6144, 8190)
SIZES = (12, 18, 24, 36)


def INTEGERS(array: Numbers) -> Numbers:  # noqa: N802
    """Whole numbers that fit an array, with zeros."""
    return np.arange(np.size(array)).reshape(np.shape(array)) % 5 - 2


def ZEROS(array: Numbers) -> Numbers:  # noqa: N802
    """Numbers with zeros of both signs."""
    flat = np.sin(np.arange(np.size(array)))
    flat[::3], flat[1::5] = 0.0, -0.0
    return flat.reshape(np.shape(array))


def INFINITE(array: Numbers) -> Numbers:  # noqa: N802
    """Numbers with infinities of both signs."""
    flat = 2.0 + np.cos(np.arange(np.size(array)))
    flat[::4], flat[2::7] = np.inf, -np.inf
    return flat.reshape(np.shape(array))


def UNKNOWN(array: Numbers) -> Numbers:  # noqa: N802
    """Numbers, but NaN at the places that `MASK` leaves out."""
    return np.where(np.arange(np.size(array)) % 3 != 1, 0.5, np.nan).reshape(np.shape(array))


DATA_SCOPE = {"INTEGERS": INTEGERS, "ZEROS": ZEROS, "INFINITE": INFINITE, "UNKNOWN": UNKNOWN}
OWN = (
    "{A}[::-1] * {B}", "{A} + {A}[..., ::-1]", "{A}[..., :1] * {A}", "{A}[:1] - {A}", "{A} * np.arange({A}.shape[-1])",
    "{M} * {M}[0]", "{M} + {M}[:, -1:]", "{V}[:, None] + {V}[None, :3]", "({V}[:4, None] * {V})[::-1, ::-2]",
    "{A} * INTEGERS({A})", "INTEGERS({A}) - {A}", "{A} * ZEROS({A})", "{A} / INFINITE({A})", "np.abs({A} * ZEROS({A}))",
    "np.minimum({A}, INFINITE({A}))", "np.where(MASK({A}), {A} * UNKNOWN({A}), {B} if {A} is {B} else 0.25)",
    "np.where(MASK({A}), {A}, UNKNOWN({A}) * 0 + 1)", "np.nan_to_num({A} * UNKNOWN({A}))", "0.0 * {A}", "{A} * 0 + {s}",
    "({A} + 2) ** INTEGERS({A})", "({A} ** 2 + 0.5) ** ZEROS({A})", "{A} ** 2", "{A} ** 3.0", "2 / (3 + {A})", "+{A}",
    "np.true_divide({A}, 2 + DATA({A}))", "np.multiply({A}, True)", "{A} * np.float32(0.5)", "{A} - np.ones({A}.shape)",
    "np.sum({A}, axis={x}, keepdims=True) * {A}", "np.sum({A} * {A}, axis=-1)", "np.sum({A}, axis=0)[..., ::-1]",
    "np.sum({A}.reshape(2, 3, -1), axis=(0, 2))", "np.sum({A}.reshape(3, -1, 2), axis=1, keepdims=True)",
    "np.mean({A}.reshape(2, -1), axis=0) * {s}", "np.sum(np.broadcast_to({A}, (3, *{A}.shape)), axis=0)",
    "np.sum({A}[..., None] * np.ones(2), axis=-1)", "np.sum({A}.T[::-1])", "np.add.reduce({A}.reshape(-1, 3))",
    "{V}.reshape(2, -1) @ {V}.reshape(-1, 2)", "{V}.reshape(3, -1).T @ {V}[:3]", "{V}[:2] @ {V}.reshape(2, -1)",
    "{V} @ {V}[::-1]", "{M} @ DATA({M}).T", "DATA({M}) @ {M}.T", "{M}[::-1] @ {M}[:, ::-1].T", "{M}[0] @ {M}.T",
    "{V}.reshape(2, 3, -1) @ DATA({V}.reshape(2, -1, 3))", "{V}.reshape(2, 3, -1) @ np.ones({V}.size // 6)",
    "{V}[:3] @ {V}.reshape(2, 3, -1)", "ZEROS({M}.T) @ {M}", "INTEGERS({M}.T) @ {M}", "{M} @ {M}.T @ {M}[:, :1]",
    "np.dot({V}, DATA({V}))", "np.matmul({V}.reshape(-1, 1), {V}[None, :4])", "{V}[None] @ {V}[:, None]",
    "np.concatenate([{V}, DATA({V}), {V}[::-2]])", "np.stack([{A}, DATA({A})])", "np.sum([{A}, {A} * {s}, DATA({A})])",
    "np.einsum('ij,ij->i', {M}, DATA({M}))", "np.tensordot({M}, DATA({M}), axes=([1], [1]))", "{A}.mean(-1)",
    "np.exp({A}) / np.sum(np.exp({A}), axis=-1, keepdims=True)", "np.linalg.norm({M}, axis=-1)", "{A}.var(axis=0)",
    "({A} - {A}.mean()) / ({A}.std() + 1)", "np.sum(({V}[:, None] - {V}[:5]) ** 2, axis=1)", "{A}.reshape(-1)[{k}::2]",
    "np.linalg.cholesky({M} @ {M}.T + 3 * np.eye({M}.shape[0]))",
    "np.linalg.inv({M}.T @ {M} + 3 * np.eye({M}.shape[1]))",
    "np.linalg.solve({M} @ {M}.T + 4 * np.eye({M}.shape[0]), {M})", "np.linalg.solve(DATA({M} @ {M}.T), {M})",
    "{A} * np.linalg.slogdet({M}.T @ {M} + 3 * np.eye({M}.shape[1]))[1]",
    "{A} * np.tanh(np.linalg.det({M} @ {M}.T / 9 + np.eye({M}.shape[0])))",
    "np.sort({A}) * DATA({A})", "np.sort({A}, axis=0)[:3]", "{V}[np.argsort({V})] * DATA({V})",
    "np.sort({V})[::-1] + {V}", "{A} - np.median({A})",
    "np.take({V}, np.argsort(DATA({V}) * {V})) * {V}", "{M}[np.argsort({M}[:, 0])]", "np.partition({V}, 1)[:3] * {s}",
    "np.median({A}, axis=-1)", "np.quantile({V}, [0.2, 0.7]) * {s}", "np.percentile({A}, 40, axis=0)",
    "np.argsort(np.argsort({V}, kind='stable'), kind='stable') * {V}", "np.sort(np.sort({V})[::2] * {V}[::2])",
    "np.take(np.cos(np.arange(9.0)), np.searchsorted(np.linspace(-1, 1, 8), {V})) * {V}",
    "np.abs(np.fft.rfft(np.nan_to_num(np.tanh({V}))))", "np.fft.fft(np.nan_to_num(np.sin({A})), axis=0).imag",
    "np.fft.irfft(np.fft.rfft(np.nan_to_num(np.tanh({V}))) * np.fft.rfft(DATA({V})))",
    "np.fft.ifft(np.fft.fft(np.nan_to_num(np.cos({V})))[::-1] * (1 + 2j), norm='ortho').real",
    "np.fft.rfft2(np.nan_to_num(np.tanh({M}))).real",
    "np.searchsorted(np.sort({V}), DATA({V})) * {V}", "np.take_along_axis({A}, np.argsort(DATA({A}) * {A}), axis=-1)",
)  # fmt: skip
OWN_STORES = """
{r} = np.sin({A})
{q} = {r} * {s}
{r}[...] = 0.25
{r} = {r} + {q}

{r} = {A} * 1.0
{q} = np.sum({r} * {r}, axis=0)
{r}[::-2] = {s}
{r} = {r} * {q}

{r} = {V} * {s}
{q} = {r}.reshape(2, -1)
{r} = {q} @ {q}.T
{q}[0] = 0.0
{r} = {r} + np.sum({q})

{r} = np.zeros({A}.shape)
{r}[..., ::2] = {A}[..., ::2] * {s}
{q} = {r} + 1
{r}[..., 1::2] += {q}[..., 1::2]

{r} = DATA({A}).copy() + 0 * {A}
{r}[..., 0] = {A}[..., -1]

{r} = np.cos(np.arange({A}.size, dtype=float)).reshape({A}.shape)
{q} = {r} * {A}
{r}[:1] = 5.0
{r} = {r} * {q} + {r} * {A}

{r} = np.zeros({A}.shape)
{r} += {A}
{q} = {r}[::-1]
{q} -= 0.5 * {A}

{r} = {M} * 2
{r}[:, ::-1] *= DATA({M})
{r}.T[0] = {s}

{r} = {A} - 1
for {q} in range(3): {r} = np.tanh({r} * {s} + {A})

{r} = np.exp(-{A})
{q} = [{r}, {r} + {s}]
{r} = sum({q}) * {q}[1]

{r} = np.empty((2, *{A}.shape))
{r}[0], {r}[1] = {A}, {A} * {t}
{r}[:, 0] = {s}

{r} = {A} * {A} if {s} > {t} else np.sin({A})

{r} = sa.grad(lambda q: np.sum(np.sin(q * {A})))({A} * {s})

{r} = sa.jvp(lambda q: q * np.cos(q), ({A},), (DATA({A}),))[1]
""".strip().split("\n\n")
SLOW = (
    "KERNEL", "outer", "kron", "vander", "vectorize", "for ", "sorted(", "apply_along", "meshgrid", "diag",
    "np.interp", "histogram", "convolve", "correlate", "cumprod", "np.prod", "accumulate",
)  # fmt: skip


MODES = (
    "value",
    "value and gradient",
    "jvp",
    "vjp",
    "hvp",
    "jvp of gradient",
    "gradient of gradient",
    "odd",
    "Hessian",
    "Jacobian",
)


class LargeText(Text):
    """A function on arrays that are large, or that pass as such."""

    SIZES: ClassVar = SIZES
    MOST: ClassVar = 150
    SCOPE: ClassVar = {**SCOPE, **DATA_SCOPE, "sa": sa}
    EXPRESSIONS: ClassVar = (
        *(OWN,) * 8, *(forms.ELEMENTWISE,) * 4, *(forms.VIEWS,) * 3, forms.FANCY, *(forms.REDUCTIONS,) * 2,
        forms.ORDERS, forms.MATRICES, forms.PYTHON,
    )  # fmt: skip
    STATEMENTS: ClassVar = (OWN_STORES, OWN_STORES, forms.STORES, forms.FUNCTIONS)


def cheap(some: Sequence[str]) -> tuple[str, ...]:
    """Forms that NumPy and a trace do to thousands of elements at once."""
    return tuple(form for form in some if not any(word in form for word in SLOW))


class TrueText(LargeText):
    """A function on arrays that are large."""

    SIZES: ClassVar = TRUE_SIZES
    MOST: ClassVar = 60_000
    EXPRESSIONS: ClassVar = (*(cheap(OWN),) * 6, *(cheap(forms.ELEMENTWISE),) * 3, cheap(forms.VIEWS))
    STATEMENTS: ClassVar = (cheap(OWN_STORES), cheap(forms.STORES))

    def result(self) -> str:
        """A number of the last things that were made, of the size of one of them."""
        parts = [f"np.sum({name} * DATA({name})) / {name}.size" for name in self.arrays[-2:]] + self.numbers[3:][-1:]
        return f"np.sin({' + '.join(parts)})"


@dataclass(frozen=True)
class Case:
    """A function, the size of its argument, what its points are made from, what is large, and what is done with it."""

    f: Callable[[Numbers], Numbers]
    size: int
    seed: int
    large: tuple[int, ...]
    native: bool
    modes: Sequence[str]

    @property
    def true(self) -> bool:
        """Whether its arrays are large without changing what is."""
        return self.size > max(SIZES)


ROUNDING = 2.0**-50  # of a number of the point: four units in the last place
STEEP = 16.0  # operations whose rounding is as that of the point


def make(draw: Draw) -> str:
    """A random function as text, and what it is checked with."""
    true = draw.unit() > 0.96
    text = (TrueText if true else LargeText)(draw)
    lines = [*text.lines, f"return {text.result()}"]
    modes = sorted(draw.sample(range(len(MODES) - 2 if true else len(MODES)), 2 if true else 3))
    some = [(3, 2), (6, 3), (12, 4), (24, 6)], [1, 3, 32], [2, 5, 64], [1, 30, 1 << 15], [2, 4, 24]
    (least, small), *others = (draw.choice(values) for values in some)
    large = ", ".join(map(str, [least, small, *others]))
    return (
        "def f(x):\n"
        + "".join(f"    {line}\n" for line in "\n".join(lines).splitlines())
        + f"\nSIZE, POINTS, NATIVE = {text.size}, {text.seed}, {draw.below(NATIVE) == NATIVE - 1 or true}\n"
        + f"MODES = {[MODES[mode] for mode in modes]}\n"
        + ("" if true else f"LARGE, SMALL, SHORT, NARROW, PRODUCTS, LOOPED = {large}\n")
    )


def case_of(text: str) -> Case:
    """What a text says."""
    scope: dict[str, Any] = dict(LargeText.SCOPE)
    execute(text, scope)
    large = tuple(scope.get(name, getattr(module, name)) for module, name in PLACES_OF)
    return Case(scope["f"], scope["SIZE"], scope["POINTS"], large, scope["NATIVE"], scope["MODES"])


@contextmanager
def thresholds(large: tuple[int, ...]) -> Iterator[None]:
    """What is large, small after large, a short sum, few sums, a large product, a matrix that is not written out."""
    with ExitStack() as stack:
        for (module, name), value in zip(PLACES_OF, large, strict=True):
            stack.enter_context(patch.object(module, name, value))
        writer = partial(array_loops.ArrayLoops, least=large[0])  # a default is that of the import
        stack.enter_context(patch.object(candidates, "ArrayLoops", writer))
        stack.enter_context(patch.object(codegen.loops.roll, "FEWEST_ROWS", 0))
        yield


def transform_of(mode: str, f: Callable[[Numbers], Numbers], v: Numbers) -> Callable[[Numbers], Numbers]:
    """A function of x that is made of derivatives of f, in the direction v."""
    made: dict[str, Callable[[Numbers], Numbers]] = {
        "value": f,
        "odd": f,
        "Hessian": sa.hessian(f),
        "Jacobian": sa.jacobian(lambda y: f(y) * y),
        "value and gradient": sa.value_and_grad(f),
        "jvp": lambda x: sa.jvp(lambda y: f(y) * y, (x,), (v,))[1],
        "vjp": lambda x: sa.vjp(lambda y: f(y) * y, x)[1](v)[0],
        "hvp": lambda x: sa.hvp(f, (x,), (v,)),
        "jvp of gradient": lambda x: sa.jvp(sa.grad(f), (x,), (v,))[1],
        "gradient of gradient": sa.grad(lambda x: np.sum(np.sin(sa.grad(f)(x)) * v)),
    }
    return made[mode]


def check(text: str) -> str:
    """Compare loops with NumPy's values, what is written out, and differences; AssertionError where they differ."""
    case = case_of(text)
    with quietly(SECONDS * (3 if case.true else 1)):
        given = points(case.size, case.seed)
        right = [x for x in given if (value := plain(case.f, x)) is not None and abs(value) < LARGEST]
        if not right:
            return "without numbers"
        v = np.random.default_rng(case.seed + SEEDS).uniform(-1, 1, case.size)
        try:
            done = 0
            for name in case.modes:
                done += checked(name, case, right, v)
        except REFUSED as error:
            return f"refused: {cause(error)}"
    return "as loops" if done else "straight"


def checked(name: str, case: Case, right: list[Numbers], v: Numbers) -> bool:
    """Compare one mode; whether there are loops. AssertionError where numbers differ."""
    transform = transform_of(name, case.f, v)
    found = list(ways(transform, right[0], case))
    odd = name == "odd"
    for x in odd_points(case.size, case.seed) if odd else right[: 1 if case.true else 2]:
        expected = plain(case.f, x) if odd else flat(transform(x))
        if expected is None:
            continue  # NumPy's function raises there
        steep = None if odd else partial(last_digits, transform, x, expected)
        for wrong in differing(name, found, x, np.atleast_1d(expected), case.size if case.true else 1, steep):
            raise AssertionError(f"{wrong}, at {x[:9].tolist()}")
        for wrong in () if odd or (case.true and name != "value") else oracles(name, case.f, x, v, expected):
            raise AssertionError(f"{wrong}, at {x[:9].tolist()}")
    return any(way == "loops" for way, _ in found)


def ways(transform: Callable[[Numbers], Numbers], x: Numbers, case: Case) -> Iterator[Way]:
    """A transform in loops, carried out one after the other and as a kernel, and as straight lines."""
    with thresholds(case.large):
        rolled = rolled_of(transform, x)
        if rolled is not None:
            yield "loops", lambda y: evaluate_rolled(rolled.program, [y])
            if case.native:
                yield "kernel of loops", compile_rolled(rolled)
        if case.native:
            yield "kernel", sa.compile(transform, x)
    if case.native and not case.true:
        yield "kernel of straight lines", sa.compile(transform, x, roll="never")


def flat(result: Any) -> Numbers:
    """All numbers of a result."""
    return np.concatenate([np.ravel(part) for part in (result if isinstance(result, tuple | list) else (result,))])


def last_digits(transform: Callable[[Numbers], Numbers], x: Numbers, found: Numbers) -> Numbers:
    """How far results move where the point moves by some units in its last place: sin(1e8) has eight digits."""
    return np.abs(flat(transform(x * (1 + ROUNDING))) - found)


def differing(name: str, found: list[Way], x: Numbers, right: Numbers, factor: float, steep: Any) -> Iterator[str]:
    """What differs, times a factor, from what is written out and carried out one operation after the other.

    Not where it differs by no more than what the last digits of the point decide on, times `STEEP`.
    """
    for way, run in found:
        numbers = flat(run(x))
        counted(f"{name}, {way}")
        if not near(factor * numbers, factor * right, SAME):
            if steep is not None and np.all(np.abs(numbers - right) <= STEEP * steep()):
                counted(f"{name}, {way}, decided by the last digits of the point")
                continue
            places = np.flatnonzero(~np.isclose(numbers, right, rtol=SAME, atol=SAME, equal_nan=True))[:9]
            yield f"{name}, {way}: {numbers[places]} and not {right[places]} at {places} of {len(right)}"


def oracles(name: str, f: Callable[[Numbers], Numbers], x: Numbers, v: Numbers, found: Numbers) -> Iterator[str]:
    """What differs from NumPy's value and from central differences in a direction."""
    if name == "value":
        counted("value, NumPy")
        right = plain(f, x)
        if not near(found, right, SAME) and not np.all(np.abs(found - right) <= STEEP * last_digits(f, x, right)):
            yield f"value, interpreted: {found} and not {right}"
        return
    if name == "value and gradient":
        slope, along = found[1:] @ v, lambda y: np.atleast_1d(f(y.copy()))
    elif name == "jvp":
        slope, along = found, lambda y: f(y.copy()) * y
    elif name in ("hvp", "jvp of gradient"):
        slope, along = found, sa.grad(f)
    else:
        return
    wanted = smooth_along(along, x, v)
    if wanted is not None:
        counted(f"{name}, differences")
        if not near(slope, wanted, TOLERANCE):
            yield f"{name}, interpreted: {slope} and by differences {wanted}"


def smooth_along(g: Callable[[Numbers], Numbers], x: Numbers, v: Numbers) -> Numbers:
    """A directional derivative by differences of sixth order where they can be relied on, or None."""
    try:
        one, other = (
            sum(w * (g(x + k * h * v) - g(x - k * h * v)) for k, w in ((1, 45), (2, -9), (3, 1))) / (60 * h)
            for h in STEPS
        )
    except Exception:
        return None
    return other if np.all(np.isfinite(one)) and near(one, other, SMOOTH) else None
