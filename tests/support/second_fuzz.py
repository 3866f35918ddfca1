"""Random programs of maps, sums and outer functions over random tables, their second derivatives against the flat way.

`python -m tests.fuzz hessian 200`, `python -m tests.fuzz jacobian 200`.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from codegen.ir.region import RolledProgram
from symad.derivatives.loops.loop_hessian import hessian
from symad.derivatives.loops.loop_jacobian import jacobian
from tests.support import written as text
from tests.support.draws import SEEDS
from tests.support.fuzzing import counted
from tests.support.second_cases import Rolled, flat_hessian, flat_jacobian, numbers_of, points_of

SCALES = (1.0, 0.3, 0.1)  # of points: exp(exp(exp(x))) overflows soon
TRIANGLES, FORMATS = ("lower", "upper", "full"), ("regions", "coo", "csr", "csc")
UNARY = (np.sin, np.exp, np.tanh, lambda a: a * a, lambda a: 1 / (1 + a * a), lambda a: a, lambda a: -a, abs)
BINARY = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (2 + b * b),
    lambda a, b: np.where(a > b, a * b, b), lambda a, b: np.maximum(a, b), lambda a, b: a * 0.0 + b, lambda a, b: 2.0,
)  # fmt: skip


def random_body(draw, outputs):
    """A function of some slots by random operations."""
    plan = [(draw.below(2), draw.below(8), draw.unit(), draw.unit()) for _ in range(draw.integer(1, 6))]

    def function(*values):
        found = list(values)
        for kind, operation, left, right in plan:
            a, b = found[int(left * len(found))], found[int(right * len(found))]
            found.append(UNARY[operation](a) if kind else BINARY[operation](a, b))
        return tuple(0.0 + found[-1 - k % len(found)] for k in range(outputs))

    return function


def places(draw, size, count):
    """Affine places, one place, or any; the same one several times among them."""
    kind = draw.below(4)
    if kind == 0 and count <= size:
        return np.arange(count) + draw.below(size - count + 1)
    if kind == 1:
        return np.full(count, draw.below(size))
    if kind == 2 and count <= size:
        return np.array(draw.sample(range(size), count))
    return np.array([draw.below(size) for _ in range(count)])


def reads(draw, sources, count):
    """Random gathers, a few of them."""
    chosen = [draw.choice(sources) for _ in range(draw.integer(1, 4))]
    return [(buffer, places(draw, size, count)) for buffer, size in chosen]


def stage(draw, made, sources):
    """A region that makes a buffer, for what comes after it."""
    length = draw.integer(1, 7)
    buffer = made.workspace(length)
    if draw.chance(0.5):
        into = draw.sample(range(length), draw.integer(1, length))
        write = ("store", buffer, np.array(into if draw.chance(0.5) else sorted(into)))
    else:
        write = ("add", buffer, places(draw, length, draw.integer(1, 40)))
    given = reads(draw, sources, len(write[2]))
    made.region(random_body(draw, 1), given, [write])
    sources.append((buffer, length))


def random_program(draw, scalar):
    """A program of one input that matters, another one, constants, and two or three stages of regions."""
    size = draw.integer(3, 8)
    made = Rolled((size,), (3,))
    constants = draw.generator().normal(size=5)
    sources = [(0, size), (0, size), (1, 3), (made.constants(constants), 5)]
    for _ in range(draw.below(3)):
        draw.part(lambda: stage(draw, made, sources))
    length = 1 if scalar else draw.integer(1, 5)
    for _ in range(draw.integer(1, 2)):
        count = draw.integer(1, 12)
        given = reads(draw, sources[-3:] + sources[:1], count)
        made.region(random_body(draw, 1), given, [("add", ~0, places(draw, length, count))])
    return made.program(() if scalar else (length,))


@dataclass
class Case:
    """A program, the triangle and the format of its matrix, and the seed of its point."""

    program: RolledProgram
    triangle: str
    format: str
    seed: int


def make(draw, scalar):
    """A random program, of one number or of several."""
    program = random_program(draw, scalar)
    return Case(program, draw.choice(TRIANGLES), draw.choice(FORMATS), draw.below(SEEDS))


def ordinary(rolled, seed, flat):
    """A point, nearer to 0 if numbers overflow there, and derivatives; no point where they always do.

    Where they overflow, 0 times infinity is met in some ways and not in others: see `docs/extremes.md`.
    """
    for scale in SCALES:
        points = [scale * array for array in points_of(rolled, seed)]
        right = flat(rolled, 0, points)
        if np.isfinite([*numbers_of(rolled, points)[0].flat, *right.values()]).all():
            return points, right
    return [], {}


def check_hessian(case):
    """Compare a Hessian in loops with that of the straight lines; AssertionError where it differs."""
    rolled, triangle, format = case.program, case.triangle, case.format
    points, right = ordinary(rolled, case.seed, flat_hessian)
    if not points:
        return "overflows"
    size = rolled.inputs[0].size
    matrix = np.zeros((size, size))
    for (row, column), value in right.items():
        matrix[row, column] = matrix[column, row] = value
    found, dense = hessian(rolled, 0, triangle, format), hessian(rolled, 0, None)
    if found is None or dense is None:
        return "not in loops"
    for mode in ("dense", "sparse", "pattern"):
        counted(mode)
    scale = 1e-11 * (1 + np.abs(matrix).max(initial=0, where=np.isfinite(matrix)))
    pattern, (data,) = found.outputs[0].pattern, numbers_of(found, points)
    got = np.zeros((size, size))
    got[pattern.rows, pattern.columns] = data
    part = {"lower": np.tril, "upper": np.triu, "full": np.asarray}[triangle]
    np.testing.assert_allclose(got, part(matrix), rtol=1e-9, atol=scale)
    np.testing.assert_allclose(numbers_of(dense, points)[0], matrix, rtol=1e-9, atol=scale)
    places = set(zip(np.maximum(pattern.rows, pattern.columns).tolist(),
                     np.minimum(pattern.rows, pattern.columns).tolist(), strict=True))  # fmt: skip
    assert places >= set(right), "entries are missing"
    return "in loops"


def check_jacobian(case):
    """The same for a Jacobian."""
    rolled = case.program
    points, right = ordinary(rolled, case.seed, flat_jacobian)
    if not points:
        return "overflows"
    matrix = np.zeros((rolled.outputs[0].size, rolled.inputs[0].size))
    for place, value in right.items():
        matrix[place] = value
    found, dense = jacobian(rolled, 0, True, case.format), jacobian(rolled, 0, False)
    if found is None or dense is None:
        return "not in loops"
    for mode in ("dense", "sparse", "pattern"):
        counted(mode)
    scale = 1e-11 * (1 + np.abs(matrix).max(initial=0, where=np.isfinite(matrix)))
    pattern, (data,) = found.outputs[0].pattern, numbers_of(found, points)
    got = np.zeros(matrix.shape)
    got[pattern.rows, pattern.columns] = data
    np.testing.assert_allclose(got, matrix, rtol=1e-9, atol=scale)
    np.testing.assert_allclose(numbers_of(dense, points)[0], matrix, rtol=1e-9, atol=scale)
    places = set(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))
    assert places >= set(right), "entries are missing"
    return "in loops"


written = text.written
read = partial(text.read, Case=Case)
