"""Random programs of maps, sums and outer functions over random tables, their second derivatives against the flat way.

python -m tests.support.second_fuzz 200 [first seed]
"""

import sys

import numpy as np

from symad.derivatives.loops.loop_hessian import hessian
from symad.derivatives.loops.loop_jacobian import jacobian
from tests.support.second_cases import Rolled, flat_hessian, flat_jacobian, numbers_of, points_of

UNARY = (np.sin, np.exp, np.tanh, lambda a: a * a, lambda a: 1 / (1 + a * a), lambda a: a, lambda a: -a, abs)
BINARY = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (2 + b * b),
    lambda a, b: np.where(a > b, a * b, b), lambda a, b: np.maximum(a, b), lambda a, b: a * 0.0 + b, lambda a, b: 2.0,
)  # fmt: skip


def random_body(generator, slots, outputs):
    """A function of some slots by random operations."""
    plan = [
        (int(generator.integers(2)), int(generator.integers(8)), *generator.random(2).tolist())
        for _ in range(int(generator.integers(1, 7)))
    ]

    def function(*values):
        found = list(values)
        for kind, operation, left, right in plan:
            a, b = found[int(left * len(found))], found[int(right * len(found))]
            found.append(UNARY[operation](a) if kind else BINARY[operation](a, b))
        return tuple(0.0 + found[-1 - k % len(found)] for k in range(outputs))

    return function


def places(generator, size, count):
    """Affine places, one place, or any; the same one several times among them."""
    kind = generator.integers(4)
    if kind == 0 and count <= size:
        return np.arange(count) + generator.integers(size - count + 1)
    if kind == 1:
        return np.full(count, generator.integers(size))
    if kind == 2 and count <= size:
        return generator.permutation(size)[:count]
    return generator.integers(0, size, count)


def reads(generator, sources, count):
    """Random gathers, a few of them."""
    chosen = [sources[generator.integers(len(sources))] for _ in range(int(generator.integers(1, 5)))]
    return [(buffer, places(generator, size, count)) for buffer, size in chosen]


def random_program(seed, scalar):
    """A program of one input that matters, another one, constants, and two or three stages of regions."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(3, 9))
    made = Rolled((size,), (3,))
    sources = [(0, size), (0, size), (1, 3), (made.constants(generator.normal(size=5)), 5)]
    for _ in range(int(generator.integers(0, 3))):
        length = int(generator.integers(1, 8))
        buffer = made.workspace(length)
        if generator.random() < 0.5:
            count = int(generator.integers(1, length + 1))
            into = generator.permutation(length)[:count]
            write = ("store", buffer, into if generator.random() < 0.5 else np.sort(into))
        else:
            count = int(generator.integers(1, 41))
            write = ("add", buffer, places(generator, length, count))
        given = reads(generator, sources, count)
        made.region(random_body(generator, len(given), 1), given, [write])
        sources.append((buffer, length))
    length = 1 if scalar else int(generator.integers(1, 6))
    for _ in range(int(generator.integers(1, 3))):
        count = int(generator.integers(1, 13))
        given = reads(generator, sources[-3:] + sources[:1], count)
        made.region(random_body(generator, len(given), 1), given, [("add", ~0, places(generator, length, count))])
    return made.program(() if scalar else (length,))


def check_hessian(seed):
    """Return whether loops have this Hessian; AssertionError where it differs from that of the straight lines."""
    rolled = random_program(seed, True)
    points = points_of(rolled, seed)
    right = flat_hessian(rolled, 0, points)
    size = rolled.inputs[0].size
    matrix = np.zeros((size, size))
    for (row, column), value in right.items():
        matrix[row, column] = matrix[column, row] = value
    generator = np.random.default_rng(seed)
    triangle, format = generator.choice(["lower", "upper", "full"]), generator.choice(["regions", "coo", "csr", "csc"])
    found, dense = hessian(rolled, 0, str(triangle), str(format)), hessian(rolled, 0, None)
    if found is None or dense is None:
        return False
    scale = 1e-11 * (1 + np.abs(matrix).max(initial=0))
    pattern, (data,) = found.outputs[0].pattern, numbers_of(found, points)
    got = np.zeros((size, size))
    got[pattern.rows, pattern.columns] = data
    part = {"lower": np.tril, "upper": np.triu, "full": np.asarray}[str(triangle)]
    np.testing.assert_allclose(got, part(matrix), rtol=1e-9, atol=scale, err_msg=f"seed {seed}")
    np.testing.assert_allclose(numbers_of(dense, points)[0], matrix, rtol=1e-9, atol=scale, err_msg=f"seed {seed}")
    places = set(zip(np.maximum(pattern.rows, pattern.columns).tolist(),
                     np.minimum(pattern.rows, pattern.columns).tolist(), strict=True))  # fmt: skip
    assert places >= set(right), f"seed {seed}: entries are missing"
    return True


def check_jacobian(seed):
    """The same for a Jacobian."""
    rolled = random_program(seed, False)
    points = points_of(rolled, seed)
    right = flat_jacobian(rolled, 0, points)
    matrix = np.zeros((rolled.outputs[0].size, rolled.inputs[0].size))
    for place, value in right.items():
        matrix[place] = value
    format = str(np.random.default_rng(seed).choice(["regions", "coo", "csr", "csc"]))
    found, dense = jacobian(rolled, 0, True, format), jacobian(rolled, 0, False)
    if found is None or dense is None:
        return False
    scale = 1e-11 * (1 + np.abs(matrix).max(initial=0))
    pattern, (data,) = found.outputs[0].pattern, numbers_of(found, points)
    got = np.zeros(matrix.shape)
    got[pattern.rows, pattern.columns] = data
    np.testing.assert_allclose(got, matrix, rtol=1e-9, atol=scale, err_msg=f"seed {seed}")
    np.testing.assert_allclose(numbers_of(dense, points)[0], matrix, rtol=1e-9, atol=scale, err_msg=f"seed {seed}")
    places = set(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))
    assert places >= set(right), f"seed {seed}: entries are missing"
    return True


def main():
    """Check many programs."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    done = [0, 0]
    for seed in range(first, first + count):
        for k, check in enumerate((check_hessian, check_jacobian)):
            try:
                done[k] += check(seed)
            except Exception as error:
                print(seed, check.__name__, type(error).__name__, str(error)[:400], flush=True)
    print(f"{count} programs, in loops: {done[0]} Hessians, {done[1]} Jacobians")


if __name__ == "__main__":
    main()
