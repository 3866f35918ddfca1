"""In-place code: views, aliases and out= behave on traced arrays exactly as NumPy's own do."""

import copy

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError
from symad.tracing.values.containers import from_nodes

X = np.array([0.5, -1.0, 2.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7


def item_assignment(x):
    x[0] = x[1] * x[2]
    x[-1] += 3
    return x


def slice_view(x):
    y = x[1:]
    y *= 2
    return x, y


def alias(x):
    y = x
    y += 1
    return x, y


def copies_are_independent(x):
    y, z, w = x.copy(), np.copy(x), copy.copy(x)
    y[0] = 5
    z *= 2
    w -= 1
    return x, y, z, w


def rebinding_keeps_the_old(x):
    y = x
    y = y + 1
    return x, y


def reshape_is_a_view(x):
    y = x.reshape(2, 2)
    y[0, 1] = 9
    z = x.ravel()
    z[3] = -1
    return x


def flatten_is_a_copy(x):
    x.flatten()[0] = 7
    return x


def boolean_mask(x):
    x[x < 0] = 0
    x[np.array([True, False, False, True])] *= 2
    return x


def fancy_index(x):
    x[[0, 2]] = [1.5, x[1]]
    x[[1, 1]] += 1
    return x


def fill_zeros(x):
    z = np.zeros_like(x)
    for k in range(len(x)):
        z[k] = x[k] ** 2 + (z[k - 1] if k else 0)
    return z


def empty_receives(x):
    z = np.empty_like(x)
    z[...] = x * 2
    z[1:3] = x[:2]
    return z


def all_compound_operators(x):
    y = x.copy()
    y += x
    y -= 0.5
    y *= x
    y /= 3
    y **= 2
    y //= 0.1
    y %= 0.7
    return y


def out_argument(x):
    z = np.zeros_like(x)
    np.sin(x, out=z)
    np.add(z, 1, out=z)
    np.multiply(z, x, out=z, where=np.array([True, False, True, True]))
    return z


def reductions_with_out(x):
    z = np.zeros_like(x[:2])
    np.sum(x.reshape(2, 2), axis=1, out=z)
    return z


def add_at(x):
    z = np.zeros_like(x)
    np.add.at(z, [0, 0, 2], x[:3])
    np.multiply.at(z, [2, 2], 3.0)
    np.subtract.at(z, 1, 1.0)
    return z


def rows_of_a_matrix(m):
    m[0] = m[1] + m[2]
    m[:, 1] *= 2
    m[1:, 2:] = 0
    m.T[0, 1] = 5
    m[[0, 2]] = m[[2, 0]]
    return m


def diagonal_fill(m):
    np.fill_diagonal(m, m[0])
    m.fill(m[0, 1]) if m.shape == (9, 9) else None
    return m


def copyto(x):
    z = np.ones_like(x)
    np.copyto(z, x, where=np.array([True, True, False, False]))
    np.copyto(z[2:], x[:2])
    np.put(z, [0], x[3])
    return z


def sort_in_place(x):
    x.sort()
    return x


def swap(x):
    x[0], x[1] = x[1], x[0]
    return x


def flat(x):
    y = x.reshape(2, 2)
    y.flat[1] = 3.0
    return x, list(y.flat)


def elements_are_snapshots(x):
    first = x[0]
    x[0] = 10
    return first, x


def truth_values_become_numbers(x):
    x[0] = x[1] > 0
    x[1:3] = x[1:3] > 1
    return x


def views_of_views(m):
    block = m[1:, 1:][::-1]
    block[0, 0] = 100
    block += m[0, 0]
    return m, block


def running_update(x):
    total = np.zeros_like(x[0])
    for value in x:
        total += value * value
    return total


def augmented_scalar(x):
    s = x[0]
    s += 1
    s *= 2
    return s, x


ON_VECTORS = [
    item_assignment, slice_view, alias, copies_are_independent, rebinding_keeps_the_old, reshape_is_a_view,
    flatten_is_a_copy, boolean_mask, fancy_index, fill_zeros, empty_receives, all_compound_operators, out_argument,
    reductions_with_out, add_at, copyto, sort_in_place, swap, flat, elements_are_snapshots, truth_values_become_numbers,
    augmented_scalar, running_update,
]  # fmt: skip


@pytest.mark.parametrize("function", ON_VECTORS)
def test_vectors(function, agrees_on_numbers):
    agrees_on_numbers(function, X)


@pytest.mark.parametrize("function", [rows_of_a_matrix, diagonal_fill, views_of_views])
def test_matrices(function, agrees_on_numbers):
    agrees_on_numbers(function, M)


def test_a_store_through_flat_reaches_the_array(scope):
    numbers = from_nodes(np.array([[scope.graph.number(float(k)) for k in row] for row in ((0, 1), (2, 3))]), scope)
    numbers.T.flat[1] = 7
    assert [float(number) for number in numbers.flat] == [0.0, 1.0, 7.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        np.broadcast_to(numbers, (2, 2, 2)).flat[0] = 1


def test_in_place_changes_stay_inside_the_function(scope, vector):
    nodes = vector.nodes.copy()
    given = from_nodes(nodes, scope)
    given *= 2
    given[0] = 7
    assert np.array_equal(nodes, vector.nodes)


def test_compound_assignment_to_an_ordinary_array_is_refused(vector):
    ordinary = np.zeros(3)
    alias = ordinary
    with pytest.raises(TraceError, match="stored into an ordinary float array"):
        ordinary += vector
    assert np.array_equal(alias, np.zeros(3))


def random_index(generator, shape):
    """An index of ints, slices, lists, masks, Ellipsis and None."""
    if len(shape) > 1 and generator.random() < 0.2:
        return generator.random(shape) < 0.5
    parts = []
    for size in shape:
        first, last = sorted(int(k) for k in generator.integers(-size, size + 1, 2))
        choices = [
            int(generator.integers(-size, size)),
            slice(first, last, (None, 2)[generator.integers(2)]),
            slice(None, None, -1),
            generator.integers(-size, size, 2).tolist(),
            generator.random(size) < 0.6,
            None,
            Ellipsis,
        ]
        parts.append(choices[generator.integers(len(choices))])
        if parts[-1] is Ellipsis:
            break
    return tuple(parts)


@pytest.mark.parametrize("seed", range(150))
def test_random_indices_read_and_write_as_numpys_do(seed, agrees_on_symbols):
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 4, generator.integers(1, 4)).tolist())
    values = generator.uniform(-2.0, 2.0, shape)
    order = generator.permutation(len(shape))
    read, written = random_index(generator, shape), random_index(generator, shape)

    def program(x):
        view = x.transpose(order)
        view[...] = np.sin(view)
        x[written] *= 2.0
        found = x[read]
        x[written] = 0.25
        x[x > 0.5] = x.sum()
        return x, view, found

    try:
        program(values.copy())
    except IndexError:
        with pytest.raises(IndexError):
            agrees_on_symbols(program, values)
    else:
        agrees_on_symbols(program, values)


SAME_MEMORY = {
    "asarray": lambda a: np.asarray(a),
    "asarray, dtype": lambda a: np.asarray(a, dtype=float),
    "array, copy=None": lambda a: np.array(a, copy=None),
    "ascontiguousarray": lambda a: np.ascontiguousarray(a),
    "astype": lambda a: a.astype(float, copy=False),
    "out by position": lambda a: np.multiply(a, a, a),
}


@pytest.mark.parametrize("name", SAME_MEMORY)
@pytest.mark.parametrize("shadows", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_writing_into_what_shares_memory(name, shadows, later):
    """A helper that begins with `a = np.asarray(a)` and works in place changes its caller's array, traced or not."""

    def f(x):
        a = x * 2.0
        scale = float(x[0]) if shadows else 1.0
        b = SAME_MEMORY[name](a)
        (a if later else b)[0] = x[1] * 7 * scale
        return a @ np.array([1.0, 10.0, 100.0]) + b.sum()

    x = np.array([1.5, -0.5, 2.0])
    differences = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    assert sa.grad(f)(x) == pytest.approx(differences, rel=1e-7, abs=1e-7)


def test_the_diagonal_of_a_matrix_shows_its_later_changes():
    def f(x):
        a = np.outer(x, x)
        diagonal = np.diag(a)
        a[1, 1] = x[0] ** 3
        return diagonal.sum()

    x = np.array([1.5, -0.5])
    assert sa.grad(f)(x) == pytest.approx([2 * 1.5 + 3 * 1.5**2, 0.0])


def test_an_array_of_no_axis_has_an_element_to_assign():
    """`np.ones(r.shape)` of a number r; by a mask that follows the value, by () and by ..."""

    def masked(x):
        r = np.hypot(x[0], x[1])
        z = np.ones(r.shape)
        z[r > 0] = np.sin(r[r > 0]) / r
        z *= x[2]
        return z

    def stored(x):
        z = np.zeros(())
        z[()] = 3 * x[0]
        z[...] = z + x[1] ** 2
        return z * x[2]

    for f in (masked, stored):
        for x in (np.array([0.3, 0.4, 2.0]), np.array([0.0, 0.0, 2.0])):
            value, slope = sa.value_and_grad(f)(x)
            assert value == f(x)
            np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), slope, rtol=1e-15)
    np.testing.assert_allclose(sa.grad(stored)(np.array([0.3, 0.4, 2.0])), [6.0, 1.6, 1.06], rtol=1e-15)
