"""`verify`: compare a kernel with its program, or with another route, in 50 digits or more.

At one point, or over a box: at random points and at those where kernels go wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import mpmath
import numpy as np

import symad.classroom.verification.verification_result as results
from codegen import Kernel
from codegen.evaluation.interpret import evaluate
from codegen.machine.batches.batch_run import Progress
from codegen.options import check_whole
from codegen.records import dataclass
from symad.classroom.verification.balls import flat_floats, numbered
from symad.classroom.verification.box import Search
from symad.classroom.verification.exact import (
    Exact,
    Known,
    as_exact,
    by_balls,
    by_digits,
    check_kernel,
    condition,
    error_bound,
    rounded,
)
from symad.classroom.verification.points import box_of
from symad.display.document import Document, Heading, Paragraph
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.limits import LONGEST
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.trace import Trace, trace

CANCELLED = 2.0**-26  # entries smaller than this part of the largest one have lost half their digits by cancelling
FEW = 20_000  # inputs times operations up to which the condition at a point is computed: half a second


@dataclass(frozen=True)
class Verification(Shown):
    """The differences between a kernel's numbers and exact ones at a point.

    `worst_ulp` is the largest error in units of the last place of its own entry, over the entries that do not cancel;
    `worst_index` is its flat index, `value` and `exact` are its two numbers. An entry smaller than CANCELLED times the
    largest one is the difference of numbers that agree in half their digits: no float64 program can have it to the
    last place, so these are counted apart and measured like all others by `scaled`, the largest absolute error
    divided by the largest magnitude of the result. `rows` has the worst entries, with the error that rounding the
    inputs alone would cause (where that is quick). The exact numbers of `undecided` entries are not known well enough
    to compare with; `undefined` ones are NaN in exact arithmetic too. Where nothing was compared, `worst_ulp` is NaN.
    """

    entries: int
    cancelled: int
    worst_ulp: float
    worst_index: int
    value: float
    exact: float
    scaled: float
    rows: tuple[results.EntryError, ...] = ()
    undecided: int = 0
    rigorous: bool = False
    undefined: int = 0

    def __bool__(self) -> bool:
        """Whether results were compared, and rounding explains the error of every one."""
        compared = not math.isnan(self.worst_ulp) and math.isfinite(self.scaled)
        is_small = bool(self.rows) or self.worst_ulp <= results.FAR
        return compared and is_small and all(row.is_right() for row in self.rows)

    @property
    def statement(self) -> str:
        """The result in a sentence."""
        apart = f"{self.cancelled} entries cancel to less than 2**-26 of the largest; " if self.cancelled else ""
        if self.undecided:
            apart += f"of {self.undecided} the exact number could not be told; "
        entries = counted(self.entries, "entry")
        if self.undefined:
            part = "" if self.entries == self.undefined else f"{self.undefined} of "
            apart += f"{part}the results are NaN in exact arithmetic too, and say nothing about the kernel; "
        if math.isnan(self.worst_ulp):
            last = "no precision decides what is exact here" if self.undecided else "choose a point with a value"
            return f"{entries}: no error could be told; {apart}{last}"
        return (
            f"{entries}: largest error {'at most ' if self.rigorous else ''}{self.worst_ulp:.3g} ULP "
            f"(flat index {self.worst_index}: {self.value!r}, exact {self.exact!r}); {apart}largest absolute error "
            f"{self.scaled:.2g} of the largest entry"
        )

    title = "Verification at a point"

    def document(self) -> Document:
        """Return the statement and the table of the worst entries."""
        shown = results.error_tables(self.rows, self.entries, points=False) if self.rows else ()
        return (Heading(self.title, 1), Paragraph(self.statement + "."), *shown)


@overload
def verify(
    kernel: Kernel, *args: Any, against: Callable[..., Any] | None = None, digits: int = 50, rigorous: bool = False
) -> Verification: ...


@overload
def verify(
    kernel: Kernel, *, box: Any, points: int = 1000, seed: int = 0, against: Callable[..., Any] | None = None,
    digits: int = 50, rigorous: bool = False, max_seconds: float = 60.0, progress: Progress | None = None,
) -> results.BoxVerification: ...  # fmt: skip


@public_api
def verify(
    kernel: Kernel, *args: Any, box: Any = None, points: int = 1000, seed: int = 0,
    against: Callable[..., Any] | None = None, digits: int = 50, rigorous: bool = False, max_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Verification | results.BoxVerification:  # fmt: skip
    """Compare a kernel's results with exact ones: at the point `args`, or at many points of a box.

    Without `against`, the kernel's own program is evaluated in `digits` digits: that measures rounding alone. With
    `against`, a function of the same arguments is traced and evaluated instead, for example the same derivative taken
    in another mode: that checks the derivative too. With `rigorous`, exact numbers are enclosed by ball arithmetic
    (extra "rigorous"), so that the error at every point is a proven bound.

    `box` has a pair (low, high) for each argument, numbers or arrays like it, or is one such pair for the only
    argument. Up to `points` points are measured, alone and in a batch: random ones, adversarial ones (corners, zeros,
    huge and tiny numbers, equal components, both sides of where a condition changes or a sum vanishes), and steps of a
    search that climbs from the worst. It stops after `max_seconds` and says so; the same `seed` gives the same points.
    `progress(points measured, points)` is called after each.
    Of other points than these nothing is proven. ArgumentError for complex kernels and what does not fit.

    >>> import symad as sa
    >>> kernel = sa.compile(sa.grad(lambda x: x**3), 0.1)
    >>> sa.verify(kernel, 0.1, against=sa.jacfwd(lambda x: x * x * x)).worst_ulp < 1
    True
    >>> verification = sa.verify(sa.compile(lambda x: 1 - np.cos(x), 1.0), box=(-1, 1), points=200)
    >>> verification.worst_ulp > 1e12, abs(verification.worst_point[0]) < 1e-5, verification.worst.condition < 2
    (True, True, True)
    """
    single = check_kernel(kernel)
    check_whole("digits", digits)
    check_whole("points", points)
    check_whole("seed", seed, 0)
    if not 0 < max_seconds < LONGEST:
        raise ArgumentError(f"max_seconds={max_seconds!r}", do=f"give a positive time of less than {LONGEST:g} s")
    if box is None:
        return _at_point(kernel, args, _route(kernel, against, args, digits, rigorous), single, rigorous)
    if args:
        raise ArgumentError("a point and a box", why="errors are measured at the one or over the other", do="give one")
    bounds = box_of(kernel, box)
    exact = _route(kernel, against, bounds.arguments(bounds.low / 2 + bounds.high / 2), digits, rigorous)
    name = "" if against is None else name_of(against)
    search = Search(kernel, bounds, exact, max_seconds, progress)
    return search.run(points, seed, digits=digits, rigorous=rigorous, against=name)


def _route(
    kernel: Kernel, against: Callable[..., Any] | None, args: tuple[Any, ...], digits: int, rigorous: bool
) -> Exact:
    """Return the function for exact results; ArgumentError if their number differs from the kernel's."""
    source = kernel if against is None else trace(against, *args)
    if isinstance(source, Trace):
        size, expected = sum(output.size for output in kernel.program.outputs), len(source.outputs.flat)
        if size != expected:
            raise ArgumentError(f"a kernel with {size} results against {expected} exact ones")
    return by_balls(source) if rigorous else by_digits(source, digits)


def _at_point(kernel: Kernel, args: tuple[Any, ...], exact: Exact, single: bool, rigorous: bool) -> Verification:
    values = flat_floats(kernel(*args))
    numbers = [rounded(number, single) for number in flat_floats(args)]
    known = exact(numbers)
    verification, ranked = _compared(values, known, single)
    few = len(numbers) * kernel.stats.operations_after <= FEW
    conditions = condition(exact, numbers, single) if few else None
    names = results.entry_names(kernel)
    rows = []
    for k, error in ranked:
        cause = conditions[k] if conditions else None
        rows.append(results.EntryError(names[k], k, error, args, values[k], known[k].middle, known[k].radius, cause))
    return replace(verification, rows=tuple(rows), rigorous=rigorous)


def exact_values(traced: Trace, args: Sequence[Any], digits: int = 50) -> list[Any]:
    """Return the outputs of a trace at a point as mpmath numbers, in flat order."""
    inputs = as_exact(numbered(traced, flat_floats(args)), digits)
    return evaluate(traced.graph, traced.outputs.flat, inputs, arithmetic="reference", digits=digits)


def compare_exact(values: Sequence[float], exact: Sequence[Any]) -> Verification:
    """Return the errors of floats against exact numbers (mpmath). NaN against a number is an infinite error.

    >>> compare_exact([1.0, 2.0], [mpmath.mpf(1), mpmath.mpf(2)]).worst_ulp
    0.0
    """
    return _compared(values, [Known(number) for number in exact], False)[0]


def _compared(values: Sequence[float], known: Sequence[Known], single: bool) -> tuple[Verification, list[Any]]:
    """Return the verification of values, and the entries with the largest errors, largest first."""
    near = np.array([rounded(number.middle, single) for number in known])
    finite = np.isfinite(near)
    largest = float(np.max(np.abs(near[finite]), initial=0.0))
    cancels = (np.abs(near) < CANCELLED * largest) & ((near != 0) | (np.array(values) != 0))
    errors = [error_bound(*pair, single) for pair in zip(values, known, strict=True)]
    nowhere = np.array([number.radius == 0 and bool(mpmath.isnan(number.middle)) for number in known], dtype=bool)
    nowhere &= np.isnan(np.array(values, dtype=float))
    counted = {k: error for k, error in enumerate(errors) if error is not None and not cancels[k] and not nowhere[k]}
    ranked = sorted(counted.items(), key=lambda pair: -pair[1])
    worst = ranked[0][0] if ranked else 0
    value, number = (values[worst], float(near[worst])) if values else (0.0, 0.0)
    pairs = ((values[k], known[k].middle) for k in np.flatnonzero(finite).tolist())
    gaps = [abs(float(mpmath.mpf(value) - exact)) if math.isfinite(value) else math.inf for value, exact in pairs]
    undecided, undefined = sum(error is None for error in errors), int(nowhere.sum())
    verification = Verification(
        len(values), int(cancels.sum()), counted.get(worst, math.nan if undecided or undefined else 0.0),
        worst, value, number, max(gaps, default=0.0) / (largest or 1.0), undecided=undecided, undefined=undefined,
    )  # fmt: skip
    return verification, ranked[: results.ROWS]
