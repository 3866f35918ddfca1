"""Boxes and their sample points: random points, and points where kernels tend to fail.

The latter are: corners and faces; zeros of both signs, subnormal and huge numbers, powers of two and their neighbours,
integers, multiples of pi/2; equal and nearly equal components; and both sides of a place where a condition changes, a
denominator, sum or result vanishes, or a result overflows. Bisection finds these places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import codegen
from codegen import Kernel
from codegen.ir.program import Output, Program, reachable
from codegen.matrices.matrix_loops import written_out
from codegen.records import dataclass
from symad.compiling.kernel_containers import ArgumentsApart
from symad.display.notation import counted
from symad.errors import ArgumentError
from symad.tracing.values.containers import flatten, unflatten

Points = NDArray[np.float64]  # one row for each point, in flat order of the arguments


@dataclass(frozen=True)
class Box:
    """Bounds of all flat arguments of a kernel, and the arguments' shapes."""

    low: Points
    high: Points
    shapes: tuple[tuple[int, ...], ...]
    structure: Any  # of the arguments' containers, None for plain arrays
    single: bool = False

    def arguments(self, points: Points) -> tuple[Any, ...]:
        """Return points as the kernel's arguments. The leading axes of `points` stay in front."""
        leaves = [leaf if leaf.ndim else leaf.item() for leaf in self.arrays(points)]
        arguments: tuple[Any, ...] = tuple(leaves) if self.structure is None else unflatten(self.structure, leaves)
        return arguments

    def arrays(self, points: Points) -> list[Points]:
        """Return points as one plain array for each leaf of the arguments."""
        leaves, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            leaves.append(points[..., start : start + size].reshape((*points.shape[:-1], *shape)))
            start += size
        return leaves

    def inside(self, points: Points) -> Points:
        """Return the points inside the box, in the kernel's type, without repetitions."""
        kept = points.astype(np.float32).astype(float) if self.single else points
        kept = kept[np.all((kept >= self.low) & (kept <= self.high), axis=1)]
        _, first = np.unique(kept.view(np.uint64), axis=0, return_index=True)  # by bits: -0.0 is not 0.0
        return kept[np.sort(first)]


def box_of(kernel: Kernel, bounds: Any) -> Box:
    """Return the box of one pair (low, high) for each argument, or of one pair for the only argument.

    Bounds are numbers, arrays or containers like the argument; a number holds for all of its entries, and an infinite
    one stands for the largest float. ArgumentError for anything else.

    >>> import symad as sa
    >>> kernel = sa.compile(lambda x, y: x @ x * y, np.zeros(2), 0.0)
    >>> box = box_of(kernel, [(-1, [1, 2]), (0, float("inf"))])
    >>> box.low, box.high
    (array([-1., -1.,  0.]), array([1.00000000e+000, 2.00000000e+000, 1.79769313e+308]))
    """
    shapes = tuple(array.shape for array in kernel.program.arguments)
    structure = kernel.pack.structure if isinstance(kernel.pack, ArgumentsApart) else None
    children = [None] * len(shapes) if structure is None else structure.children()
    low, high, start = [np.zeros(0)], [np.zeros(0)], 0
    for k, (pair, child) in enumerate(zip(_pairs(bounds, len(children)), children, strict=True)):
        part = shapes[start : start + (1 if child is None else child.num_leaves)]
        low.append(_bound(pair[0], part, child, f"the lower bound of argument {k}"))
        high.append(_bound(pair[1], part, child, f"the upper bound of argument {k}"))
        start += len(part)
    single = kernel.options.dtype == "float32"
    return _checked(Box(np.concatenate(low), np.concatenate(high), shapes, structure, single))


def _pairs(bounds: Any, slots: int) -> list[tuple[Any, Any]]:
    """Return one pair for each argument. A kernel of one argument also accepts the pair itself."""
    try:
        parts = list(bounds)
        if slots == 1 and len(parts) == 2:
            parts = [parts]
        pairs = [tuple(pair) for pair in parts]
    except TypeError:
        pairs = []
    if len(pairs) != slots or any(len(pair) != 2 for pair in pairs):
        why = f"the kernel takes {counted(slots, 'argument')}"
        raise ArgumentError(f"box={bounds!r}"[:200], why=why, do="give a pair (low, high) for each argument")
    return [(pair[0], pair[1]) for pair in pairs]


def _bound(bound: Any, shapes: Sequence[tuple[int, ...]], child: Any, name: str) -> Points:
    """Return a bound of one argument as flat numbers. `child` is a container's structure, None for an array."""
    leaves = [bound]
    if isinstance(bound, int | float | np.number):
        leaves = [bound] * len(shapes)
    elif child is not None and not child.is_leaf():
        leaves, structure = flatten(bound)
        if structure != child:
            raise ArgumentError(f"{name} of structure {structure}", why=f"it is {child}", do="or give a number")
    parts = []
    for leaf, shape in zip(leaves, shapes, strict=True):
        try:
            parts.append(np.broadcast_to(np.asarray(leaf, dtype=float), shape).ravel())
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name} = {leaf!r}"[:200], why=f"not numbers of the shape {shape}") from error
    return np.concatenate(parts or [np.zeros(0)])


def _checked(box: Box) -> Box:
    if np.isnan(box.low).any() or np.isnan(box.high).any():
        raise ArgumentError("a box with a bound that is nan", do="give numbers")
    if (wrong := np.flatnonzero(box.low > box.high)).size:
        k = int(wrong[0])
        raise ArgumentError(f"a box from {box.low[k]:g} to {box.high[k]:g}", why=f"entry {k} has no point between them")
    largest = float(np.finfo(np.float32 if box.single else float).max)
    return replace(box, low=np.clip(box.low, -largest, largest), high=np.clip(box.high, -largest, largest))


POWERS = (-1074, -1022, -512, -100, -60, -53, -52, -30, -27, -26, -20, *range(-10, 11), 20, 26, 27, 30, 52, 53, 60,
          100, 512, 1023)  # fmt: skip
THRESHOLDS = (1e-154, 1.4916681462400413e-154, 1.3407807929942596e154, 88.72283905206835, 709.782712893384,
              710.4758600739439, 745.1332191019412, 1e300, math.e, 1 / 3, 0.1, 1.5)  # fmt: skip
COMPARED = (sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.Eq, sp.Ne, sp.Max, sp.Min)  # heads whose branch changes at equal operands
FIRST = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 10.0, -10.0, 5e-324, -5e-324)  # in every search
VANISHING = (sp.Abs, sp.sign, sp.Heaviside, sp.Pow, sp.log)  # heads with an edge where their first operand is 0
MOST_PLACES, BISECTIONS = 64, 64
ZEROS = 0.15  # share of zeros among special numbers, if 0 is in the box


def ordinals(points: Points) -> NDArray[np.int64]:
    """Return the positions of floats in their order: neighbours differ by 1, both zeros are 0.

    >>> ordinals(np.array([0.0, 5e-324, -5e-324, 1.0])).tolist()
    [0, 1, -1, 4607182418800017408]
    """
    whole = points.view(np.int64)
    return np.where(whole < 0, np.int64(-(2**63)) - whole, whole)


def floats(places: NDArray[np.int64]) -> Points:
    """Return the floats at positions of their order; the inverse of `ordinals`.

    >>> floats(np.array([0, 1, -1, 4607182418800017409]))
    array([ 0.e+000,  5.e-324, -5.e-324,  1.e+000])
    """
    return np.where(places < 0, np.int64(-(2**63)) - places, places).view(float)


def random_points(box: Box, count: int, random: np.random.Generator) -> Points:
    """Return points of the box: components are uniform in value or in the order of floats."""
    size = len(box.low)
    share = random.random((count, size))
    with np.errstate(over="ignore"):
        even = box.low + share * (box.high - box.low)
    first, last = ordinals(box.low).astype(float), ordinals(box.high).astype(float)
    places = np.clip(first + share * (last - first), first, last)
    evenly = np.isfinite(even) & (random.random((count, size)) < random.random((count, 1)))
    return np.clip(np.where(evenly, even, floats(places.astype(np.int64))), box.low, box.high)


def special_numbers() -> Points:
    """Return numbers at which formulas, conversions and libraries often fail, and their neighbours."""
    whole = [float(k) for k in range(1, 21)] + [k + 0.5 for k in range(6)]
    turns = [k * math.pi / 2 for k in (1, 2, 3, 4, 5, 6, 7, 8, 101, 1000001)]
    numbers = np.array([math.ldexp(1.0, k) for k in POWERS] + whole + turns + list(THRESHOLDS))
    numbers = np.concatenate([numbers, np.nextafter(numbers, np.inf), np.nextafter(numbers, 0.0)])
    numbers = numbers[np.isfinite(numbers)]
    return np.append(np.unique(np.concatenate([-numbers, numbers, [0.0, float(np.finfo(float).max)]])), -0.0)


def adversarial_points(box: Box, count: int, random: np.random.Generator) -> Points:
    """Return up to `count` points of special kinds: corners, faces, special numbers, equal components."""
    numbers = special_numbers()
    share = max(1, count // 6)
    specials = _specials(box, numbers, 2 * share, random)
    alone = np.where(_one_of(specials.shape, random), specials, random_points(box, len(specials), random))
    others = [_corners(box, share, random), _faces(box, share, random), _equal_components(box, share, random)]
    return box.inside(np.concatenate([alone, *others, specials]))[:count]


def _one_of(shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.bool_]:
    """Choose one place in each row."""
    chosen: NDArray[np.bool_] = np.arange(shape[1]) == random.integers(max(shape[1], 1), size=(shape[0], 1))
    return chosen


def _specials(box: Box, numbers: Points, count: int, random: np.random.Generator) -> Points:
    """Return special numbers in every component. The first component takes them one after the other."""
    columns = []
    for k, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
        near = numbers[(numbers >= low) & (numbers <= high)]
        known = np.concatenate([near, [low, high]])
        column = random.choice(known, count) if k else random.permutation(np.resize(known, count))
        if low <= 0 <= high:
            column = np.where(random.random(count) < ZEROS, random.choice([0.0, -0.0], count), column)
        if k == 0:
            column = np.append([number for number in FIRST if low <= number <= high], column)[:count]
        columns.append(column)
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def _corners(box: Box, count: int, random: np.random.Generator) -> Points:
    size = len(box.low)
    if size <= 6:
        sides = (np.arange(2**size)[:, None] >> np.arange(size)) % 2 == 1
    else:
        sides = random.random((max(count, 2), size)) < 0.5
        sides[0], sides[1] = False, True
    return np.where(sides, box.high, box.low)


def _faces(box: Box, count: int, random: np.random.Generator) -> Points:
    points = random_points(box, count, random)
    at_bound = random.random(points.shape) < random.random((count, 1))
    return np.where(at_bound, np.where(random.random(points.shape) < 0.5, box.low, box.high), points)


def _equal_components(box: Box, count: int, random: np.random.Generator) -> Points:
    """Return points with a component equal to, next to, or minus another; or with all components equal."""
    points, size = random_points(box, count, random), len(box.low)
    if size < 2:
        return points[:0]
    first, second = random.integers(size, size=count), random.integers(size, size=count)
    rows = np.arange(count)
    equal = points[rows, first]
    nearly = floats(ordinals(equal) + random.integers(-2, 3, size=count))
    points[rows, second] = np.where(random.random(count) < 0.2, -equal, nearly)
    all_equal = random.random(count) < 0.2
    points[all_equal] = equal[all_equal, None]
    return points


def neighbours(box: Box, point: Points, count: int, random: np.random.Generator) -> Points:
    """Return points near a point: steps of all sizes, counted in floats, in one, some or all components."""
    size = len(point)
    steps = np.exp2(random.uniform(0, 52, (count, size))) * random.choice([-1, 1], (count, size))
    moved = random.random((count, size)) < random.choice([1 / max(size, 1), 0.5, 1.0], (count, 1))
    moved |= _one_of((count, size), random)
    places = ordinals(point) + np.where(moved, steps, 0).astype(np.int64)
    return box.inside(np.clip(floats(places), box.low, box.high))


def edge_points(kernel: Kernel, box: Box, count: int, random: np.random.Generator) -> Points:
    """Return points on both sides of each place where a branch changes or a value vanishes or overflows.

    Bisection between random points finds all such places at once, with a separate kernel.
    """
    signs = _sign_changes(written_out(kernel.program), random)
    start = box.inside(random_points(box, 64, random))
    positive = signs(box, start)
    ends: list[tuple[int, int, int]] = []
    for place in range(positive.shape[1]):
        above, below = np.flatnonzero(positive[:, place]), np.flatnonzero(~positive[:, place])
        if above.size and below.size:
            ends += [(place, int(random.choice(above)), int(random.choice(below))) for _ in range(4)]
    if not ends:
        return start[:0]
    place, above, below = np.array([ends[k] for k in random.permutation(len(ends))[: max(count // 2, 1)]]).T
    high, low, rows = start[above], start[below], np.arange(len(place))
    for _ in range(BISECTIONS):
        middle = _between(high, low)
        up = signs(box, middle)[rows, place][:, None]
        high, low = np.where(up, middle, high), np.where(up, low, middle)
    sides = np.stack([high, low], axis=1)  # of a place, which are neighbours
    return box.inside(sides.reshape(-1, len(box.low)))


def _between(first: Points, second: Points) -> Points:
    """Return the floats halfway between floats in their order, so that 64 halvings reach neighbours."""
    u, v = ordinals(first), ordinals(second)
    return floats((u & v) + ((u ^ v) >> 1))  # (u + v) // 2 without overflow


def _sign_changes(program: Program, random: np.random.Generator) -> Callable[[Box, Points], NDArray[np.bool_]]:
    """Return a function of points: the signs of a program's differences, and whether results are finite."""
    results = list(dict.fromkeys(row for output in program.outputs for row in output.rows))
    places = _places(program, results, random)
    zero, count = len(program), len(places)
    sides = [[zero if row is None else row for row in side] for side in zip(*places, strict=True)] or [[], []]
    outputs = tuple(Output((count,), tuple(side)) for side in sides)
    heads, operands = [*program.heads, sp.Integer], [*program.operands, ()]
    atoms = {**program.atoms, zero: sp.Integer(0)}
    watched = Program(heads, operands, atoms, program.inputs, outputs, name="edges")
    kernel = codegen.compile_program(watched, tier="fast", cache=False)

    def signs(box: Box, points: Points) -> NDArray[np.bool_]:
        first, second = kernel.batch(*box.arrays(points))
        with np.errstate(invalid="ignore"):
            differences = np.reshape(first - second, (len(points), count))
        return np.concatenate([differences > 0, np.isfinite(differences)], axis=1)

    return signs


def _places(program: Program, results: list[int], random: np.random.Generator) -> list[tuple[int, int | None]]:
    """Return pairs of compared rows, and (row, None) for rows that matter where they vanish."""
    varying = bytearray(len(program))
    branches: dict[tuple[int, int | None], None] = {}
    others: dict[tuple[int, int | None], None] = dict.fromkeys((row, None) for row in results)
    for row in reachable(program, results):
        head, operands = program.heads[row], program.operands[row]
        varying[row] = row < program.input_count or any(varying[operand] for operand in operands)
        if not varying[row] or not operands:
            continue
        if head in COMPARED:
            branches[operands[0], operands[1]] = None
        elif head in VANISHING:
            branches[operands[0], None] = None
        if head in (sp.Add, sp.log):
            others[row, None] = None
    truths = {head for head in program.heads if issubclass(head, sp.logic.boolalg.Boolean) and head is not sp.Symbol}
    rest = [place for place in others if place not in branches and program.heads[place[0]] not in truths]
    known = list(branches)[:MOST_PLACES]
    random.shuffle(rest)
    return [*known, *rest[: MOST_PLACES - len(known)]]
