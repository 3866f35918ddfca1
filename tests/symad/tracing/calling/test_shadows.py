"""Code that converts to plain numbers before NumPy is asked: it runs again with names shadowed, unmodified."""

import importlib
import itertools
import math
import statistics
from math import exp, sqrt

import numpy as np
import pytest
from numpy import array, zeros

import symad as sa
from symad.errors import TraceError

X = np.array([1.3, 0.7])
ORIGINALS = (math, np, exp, sqrt, array, zeros)


def trigonometry(x):
    return math.sin(x[0]) * exp(x[1]) + math.hypot(x[0], x[1]) - math.atan2(x[1], x[0])


def the_rest_of_math(x):
    a, b = x
    total = math.log(a, 2) + math.log(b) + math.fsum([a, b]) + math.prod([a, b]) + math.dist([a, 0], [b, 1])
    total += math.erf(a) + math.gamma(b) + math.lgamma(a) + math.pow(a, b) + math.copysign(a, -b) + math.fmod(a, b)
    return total + math.remainder(a, b) + math.floor(a) + math.trunc(b) + math.degrees(a) + math.isnan(b)


def filled(x):
    z = np.zeros(3)
    for i in range(3):
        z[i] = x[i % 2] ** (i + 1)
    alias = z
    alias[0] += 1
    return np.sum(z) * z[0]


def filled_matrix(x):
    z = zeros((2, 2))
    z[0, 0], z[1, 1], z[0, 1] = x[0], x[1], 1.0
    return np.linalg.det(z) + np.trace(np.linalg.inv(z))


def filled_view(x):
    rows = np.ones((2, 2))
    first = rows[0]
    first[:] = x
    return rows.sum() + rows[0, 1] ** 3


def filled_empty(x):
    z = np.empty(2)
    z[:] = x
    z[1] *= z[0]
    return z.sum()


def added_to_an_ordinary_array(x):
    z = np.ones(2)
    z += x
    return np.prod(z)


def made_of_numbers(x):
    z = np.array([1.0, 2.0, 3.0])
    z[1:] = x
    return z @ z


def mixed_array(x):
    return np.sum(np.sqrt(np.array([x[0], 1.0, x[1]]))) + np.dot(array([x[0], 2.0]), np.ones(2))


def conversions(x):
    return float(x[0]) * 2 + float("1.5") * np.float64(x[1]) + int(x[0]) + isinstance(2.0, float) * x[0]


def statistics_of_lists(x):
    return np.mean([x[0], x[1], 2.0]) + np.std([x[0], x[1]]) + np.linalg.norm([x[0], x[1]]) + np.exp([*x]).sum()


def with_a_dtype(x):
    x = np.asarray(x, dtype=float)
    return x @ np.array(x, dtype=np.float64) + np.full(3, x[0]).sum()


def linear_system(x):
    return np.linalg.solve([[x[0], 1.0], [1.0, x[1]]], [1.0, 2.0])[0]


def in_a_helper(x):
    z = _made(2)
    z[0] = _sine(x[0])
    return z.sum() + x[1] ** 2


def _made(n):
    return np.zeros(n)


def _sine(value):
    return math.sin(value)


def of_iterators(x):
    total = math.fsum(value**2 for value in x) + math.prod(map(abs, x)) + np.fromiter((v**3 for v in x), float).sum()
    return total + statistics.mean(list(x)) * statistics.stdev(x) + statistics.fmean(x) * statistics.pvariance(list(x))


def with_a_domain_error(x):
    try:
        return math.log(x[0] - 2) + x[1]
    except ValueError:
        return math.sqrt(x[1]) * x[0]


class Model:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        z = np.zeros(self.n)
        z[: self.n] = x
        return self.nested(z) + self.nested(x)

    @staticmethod
    def nested(x):
        return sum(math.cos(value) for value in x)


FUNCTIONS = [
    trigonometry, the_rest_of_math, filled, filled_matrix, filled_view, filled_empty, added_to_an_ordinary_array,
    made_of_numbers, mixed_array, conversions, statistics_of_lists, with_a_dtype, linear_system, in_a_helper,
    of_iterators, Model(2),
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: getattr(f, "__name__", "method"))
def test_ordinary_code_is_differentiated_and_compiled_as_it_is(f):
    """Gradient against central differences, Hessian by two routes, the kernel against Python itself."""
    step = 1e-6
    differences = [(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(2)]
    assert sa.grad(f)(X) == pytest.approx(differences, rel=1e-7, abs=1e-9)
    assert sa.hessian(f)(X) == pytest.approx(sa.hessian(f, mode="fwd-fwd")(X), rel=1e-12, abs=1e-12)
    assert sa.compile(f, X)(X) == pytest.approx(f(X), rel=1e-14)
    assert (math, np, exp, sqrt, array, zeros) == ORIGINALS
    assert "float" not in globals()


def test_helpers_in_other_modules_are_reached(tmp_path, monkeypatch):
    """The module that makes the array is neither the caller's nor the one that stores."""
    code = {"maker": "import numpy as np\ndef make(n): return np.zeros(n)\n"}
    code["user_model"] = (
        "import maker\nimport math\ndef f(x):\n    z = maker.make(2)\n    z[0] = math.exp(x)\n    return z @ z\n"
    )
    for name, text in code.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    model = importlib.import_module("user_model")
    assert sa.grad(model.f)(0.5) == pytest.approx(2 * np.exp(1.0))
    assert model.maker.np is np


def test_the_errors_of_math_are_followed_on_numbers():
    """math.log(-0.7) raises, and the function catches it; in a kernel that is a path."""
    assert sa.grad(with_a_domain_error)(X) == pytest.approx([np.sqrt(0.7), 0.65 / np.sqrt(0.7)])
    assert sa.grad(with_a_domain_error)(np.array([3.0, 1.0])) == pytest.approx([1.0, 1.0])
    with pytest.raises(OverflowError):
        sa.grad(lambda x: math.exp(x[0] * 1000))(X)
    kernel = sa.compile(sa.grad(with_a_domain_error), X)
    for x in (X, np.array([3.0, 1.0])):
        assert kernel(x) == pytest.approx(sa.grad(with_a_domain_error)(x))


def test_names_of_enclosing_functions_are_reached():
    """Also through a wrapper and a second function, and they are put back."""

    def make():
        import math as m  # noqa: PLC0415 (the name of an enclosing function is the point)

        from numpy import zeros as z  # noqa: PLC0415 (likewise)

        def inner(value):
            return m.sin(value)

        def f(x):
            y = z(2)
            y[0] = inner(x[0])
            return y.sum() + x[1]

        return f, lambda: (m, z)

    f, names = make()
    assert sa.grad(f)(X) == pytest.approx([np.cos(X[0]), 1.0])
    assert sa.hessian(lambda x: f(x))(X) == pytest.approx(np.array([[-np.sin(X[0]), 0.0], [0.0, 0.0]]))
    assert names() == (math, np.zeros)


def test_what_is_never_written_shows():
    """np.empty under shadows holds NaN, not memory's old contents."""

    def f(x):
        z = np.empty(2)
        z[0] = x[0]
        return z.sum()

    assert np.isnan(sa.value_and_grad(f)(X)[0])


def masked(x):
    y = np.zeros(2)
    mask = x > 1
    y[mask] = x[mask] ** 2
    return y.sum() + np.array([3.0, 4.0])[mask].sum() * x[1]


def flat_store(x):
    a = np.diag([1.0, 2.0])
    a.flat[1] = x[0]
    a[1, 0] = x[1]
    b = np.tile([1.0, 2.0], 2)
    b[3] = x[0]
    first, _ = np.meshgrid([1.0, 2.0], [3.0, 4.0])
    first[0, 0] = x[1]
    return np.linalg.det(a) * b.sum() + first.sum()


def asks_for_types(x):
    kinds = [isinstance(x[0], float), isinstance(x[0], np.floating), isinstance(x[0], int), isinstance(x, np.ndarray)]
    assert kinds == [True, True, False, True]
    assert isinstance(x[0] > 0, np.bool_)
    return {True: x[0] * 2, False: x[1]}[x[0] > 0.5]


@pytest.mark.parametrize("f", [masked, flat_store, asks_for_types], ids=lambda f: f.__name__)
def test_masks_types_and_keys_follow_the_values(f):
    differences = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    assert sa.grad(f)(X) == pytest.approx(differences, rel=1e-7, abs=1e-9)


def test_constants_of_a_filled_array_are_numbers_to_functions_without_a_traced_form():
    """In the second run np.zeros makes a traced array; the eigenvalues of numbers are numbers all the same."""

    def f(x):
        store = np.zeros(2)
        store[0] = x[0]
        matrix = np.zeros((2, 2))
        matrix[0, 1] = matrix[1, 0] = 3.0
        return store.sum() * np.linalg.eigvalsh(matrix)[1] * np.unique(np.array([2.0, 2.0]))[0]

    assert sa.grad(f)(X) == pytest.approx([6.0, 0.0])


def put(y, x):
    np.put(y, [0, 1], x)


def put_along_axis(y, x):
    np.put_along_axis(y, np.array([1, 0]), x, 0)


def place(y, x):
    np.place(y, np.array([True, False]), x[1:])


def putmask(y, x):
    np.putmask(y, np.array([False, True]), x)


@pytest.mark.parametrize("write", [np.copyto, put, put_along_axis, place, putmask], ids=lambda f: f.__name__)
def test_functions_that_write_into_an_array_reach_that_array(write):
    """Also when float() has asked for the second run: a traced copy of the array would be written to, and lost."""

    def f(x):
        scale = float(x[0])
        y = np.zeros(2)
        write(y, x)
        z = np.zeros((2, 2))
        np.fill_diagonal(z, x)
        return scale * math.sin(y[0]) + (y * x).sum() + (z @ x) @ np.array([3.0, 5.0])

    differences = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    assert sa.grad(f)(X) == pytest.approx(differences, rel=1e-7, abs=1e-9)
    assert sa.compile(f, X)(X) == pytest.approx(f(X))


def types_are_compared(x):
    whole, half = 3, 0.5
    kinds = [type(whole) is int, type(half) is float, type(np.float64(1)) is np.float64, type(int) is type]
    kinds.append(type(x) is int)
    match whole:
        case int(n):
            kinds.append(n == 3)
    assert kinds == [True, True, True, True, False, True]
    return math.sin(x[0]) + x[1] * {int: 2.0, str: 3.0}[type(whole)] * isinstance(type(whole), type)


def whole_numbers(x):
    table = np.array([1.0, 2.0, 3.0])
    steps = sum(1 for _ in range(int(x[0]) + 2))
    return math.sin(x[0]) * table[int(x[0]) + 1] * {0: 5.0, 1: 7.0}.get(int(x[1]), 9.0) + steps * x[1]


def counted(x):
    return math.sin(x[0]) * np.fromiter(itertools.count(), float, 3).sum() + x[1]


@pytest.mark.parametrize("f", [types_are_compared, whole_numbers, counted], ids=lambda f: f.__name__)
def test_shadowed_names_answer_like_the_originals(f):
    differences = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    assert sa.grad(f)(X) == pytest.approx(differences, rel=1e-7, abs=1e-9)


def test_an_array_that_the_user_made_read_only():
    fixed = np.ones(2)
    fixed.flags.writeable = False

    def f(x):
        fixed[0] = 1.0
        return x.sum()

    with pytest.raises(ValueError, match="read-only") as caught:
        sa.grad(f)(X)
    assert not isinstance(caught.value, TraceError)


@pytest.mark.parametrize("copy", [None, False, True, np._CopyMode.IF_NEEDED, np._CopyMode.ALWAYS])
def test_arrays_are_made_as_libraries_for_several_kinds_of_arrays_ask(copy):
    def f(x):
        assert x.device == "cpu"
        assert x[0].device == "cpu"
        made = np.array(x, copy=copy, dtype=float)
        made = made + np.array([x[0], 1.0, 2.0])
        return np.sum(made**2)

    np.testing.assert_allclose(sa.grad(f)(np.ones(3)), [8 if k == 0 else 2 * (k + 1) for k in range(3)])


def test_float64_of_an_array_is_that_array():
    """As `colour.utilities.as_float` uses it; `float` of one is refused, by NumPy too."""

    def f(x):
        y = x * 1.0
        same = np.float64(y)
        same[0] = 5.0 * x[1]
        listed = np.float64([x[0], x[1] * x[1]])
        column = np.double(x.reshape(-1, 1))
        return np.sum(y * y) + np.prod(listed) + np.sum(column**3) + np.float64(x[0] > 0.5) * x[0]

    x = np.array([0.7, 1.3])
    value, slope = sa.value_and_grad(f)(x)
    assert value == pytest.approx(f(x.copy()), rel=1e-14)
    assert sa.compile(f, x)(x) == pytest.approx(value, rel=1e-14)
    differences = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-7)
    with pytest.raises(TypeError, match="only 0-dimensional arrays"):
        sa.grad(lambda x: float(x * 1.0))(x)


class Doubled(list):
    def __getitem__(self, place):
        return 2 * list.__getitem__(self, place)


class Named(str):
    def __mod__(self, other):
        return other


def test_a_list_or_text_takes_one_of_a_users_class_on_its_right():
    def f(x):
        first, text = [math.sin(x)], "a"
        joined = first + Doubled([2.0])
        joined += Doubled([x])
        return joined[0] * joined[1] + joined[2] ** 2 + (Doubled([x]) + first)[0] + len(text + Named("b"))

    assert sa.value_and_grad(f)(0.7) == pytest.approx((f(0.7), 2 * math.cos(0.7) + 1.4 + 1.0), rel=1e-14)


@pytest.mark.parametrize(
    "point", [(1e20, 3.0), (1e17, 0.7), (2.5, 1.0), (-3.5, 1.0), (0.5, 1.0), (-4.0, 2.0), (3.0, math.inf)]
)
def test_the_remainder_to_the_nearest_multiple_is_exact(point):
    def remainder(x, y):
        return math.remainder(x, y)

    want = math.remainder(*point)
    for value in (sa.value_and_grad(remainder)(*point)[0], sa.compile(remainder, 1.0, 2.0)(*point)):
        assert (value, math.copysign(1, value)) == (want, math.copysign(1, want))
    assert sa.grad(remainder, (0, 1))(-8.3, 3.0) == (1.0, 3.0)


@pytest.mark.parametrize("point", [(1e-300, 1500), (1e300, -1500), (0.0, 2000), (-0.75, 7), (0.3, -3)])
def test_an_exponent_is_loaded_in_two_steps(point):
    def loaded(x):
        return math.ldexp(x, point[1])

    for value in (sa.value_and_grad(loaded)(point[0])[0], sa.compile(loaded, 1.0)(point[0])):
        assert value == math.ldexp(*point)
