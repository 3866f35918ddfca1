"""Scalar expressions, against NumPy itself."""

import math
import operator

import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad as sa
from symad.tracing.numpy.ufuncs import SEVERAL_OUTPUTS, UFUNCS
from symad.tracing.values.scalar import Scalar

POINTS = [(0.3, 0.7), (1.7, 0.4), (-0.6, 2.3), (-1.3, -0.2)]

UNARY = [
    np.negative, np.positive, np.absolute, np.fabs, np.sign, np.square, np.reciprocal, np.sqrt, np.cbrt, np.rint,
    np.floor, np.ceil, np.trunc, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan,
    np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.degrees,
    np.rad2deg, np.radians, np.deg2rad, np.isfinite, np.isinf, np.isnan, np.signbit, np.conjugate, np.logical_not,
    np.modf, np.round, np.sinc, np.i0, np.nan_to_num, np.real, np.imag,
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.mod, np.fmod, np.power,
    np.float_power, np.hypot, np.arctan2, np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.heaviside,
    np.logaddexp, np.logaddexp2, np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.divmod,
]  # fmt: skip
SPECIAL_UNARY = [
    special.erf, special.erfc, special.gamma, special.rgamma, special.expit, special.log_expit, special.logit,
    special.entr, special.ndtr, special.j0, special.j1, special.i0, special.i1,
]  # fmt: skip
SPECIAL_BINARY = [special.xlogy, special.xlog1py, special.rel_entr]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, divmod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
EXPRESSIONS = [
    lambda a, b: a**2 + b**2.0 - 3 * a * b,
    lambda a, b: (a + 1) / (b * b + 2) - 1 / (1 + a**2),
    lambda a, b: abs(a) + -b + +a,
    lambda a, b: a**-1 + a**-2 + 2**b + 2.5**a,
    lambda a, b: 2 * a - 3.5 + np.float64(1.5) * a + a * np.int64(3) + np.float32(0.5),
    lambda a, b: np.pi * a + math.pi * b + np.e,
    lambda a, b: a // 0.25 + a % 0.25 + 3 // b + 3 % b,
    lambda a, b: (a > 0) * b + (b > 1) * 2.0,
    lambda a, b: (a > 0) + (b > 0),
    lambda a, b: (a > 0) & (b < 1) | ~(a < b) ^ (b > 0),
    lambda a, b: np.where(a > 0, np.log(a), b),
    lambda a, b: np.where((a > 0) & (b > 0), a * b, 0),
    lambda a, b: np.where(a > b, a > 0, b > 0),
    lambda a, b: np.clip(a, -0.5, 0.5) + np.clip(b, None, 1) + np.clip(a, 0.2, None),
    lambda a, b: np.select([a > 1, a > 0], [a, b], default=-1.0),
    lambda a, b: round(a) + round(b, 1) + math.floor(a) + math.ceil(b) + math.trunc(a),
    lambda a, b: np.round(a * 10, 2) + np.round(b * 1234.5, -2),
    lambda a, b: a.conjugate() + b.real + a.imag + b.item() + a.copy(),
    lambda a, b: np.array([a, b]).sum() + np.sum([a, b]) + np.prod([a, 2.0, b]),
    lambda a, b: np.mean([a, b]) + np.std([a, b]) + np.var([a, b, 1.0]),
    lambda a, b: np.stack([a, b, 1.0]) * np.array([1, 2, 3]),
    lambda a, b: np.hstack([a, b, [1.0, 2.0]]),
    lambda a, b: np.array([a, b]) @ np.array([b, a]),
    lambda a, b: np.sin(np.array([a, b])) * np.array([1.0, 2.0]),
    lambda a, b: np.array([[a, 1.0], [b, 2.0]]).T + 1,
    lambda a, b: np.linalg.norm([a, b]),
    lambda a, b: np.dot([a, b], [1.0, 2.0]) + np.dot([a, b], [b, a]),
    lambda a, b: np.ones(3) * a + b,
    lambda a, b: np.arange(3) * a,
    lambda a, b: a * np.arange(3) + np.multiply([1, 2, 3], b),
    lambda a, b: a + np.arange(6.0).reshape(2, 3),
    lambda a, b: np.outer(np.stack([a, b]), [1.0, 2.0]),
    lambda a, b: np.linspace(a, b, 5),
    lambda a, b: np.polyval([1.0, 2.0, 3.0], a) + np.polyval([a, b], 2.0),
    lambda a, b: np.interp(a, [-1.0, 0.0, 0.5, 2.0], [1.0, 3.0, -1.0, 0.5]),
    lambda a, b: sum([a, b, a]),
    lambda a, b: math.prod([a, b, 2]),
    lambda a, b: {"sum": a + b, "parts": (a, [b, 2.0])},
    lambda a, b: (a > 0, a < b),
    lambda a, b: np.sum(a) + np.mean(b) + a.sum() + np.max(a) + a.mean(),
    lambda a, b: np.float64(2.0) ** a + np.float64(2.0) / b,
    lambda a, b: np.atleast_1d(a) + np.ravel(b) + np.reshape(a, (1,)),
    lambda a, b: np.isclose(0.0, 0.0) * a,
    lambda a, b: np.ldexp(a, 3),
    lambda a, b: a.astype(float) + (a > 0).astype(int) + (a > 0).astype(float) * b,
    lambda a, b: a.clip(-0.2, 0.2) + b.round(1) + a.max(),
    lambda a, b: np.add(a, b) + np.multiply(a, 2) + np.power(abs(a), 1.5) + np.sqrt(abs(b)),
    lambda a, b: np.piecewise(a, [a < 0, a >= 0], [lambda t: -t, lambda t: t**2]),
]


def identify(function):
    return getattr(function, "__name__", "ufunc") + str(
        getattr(getattr(function, "__code__", None), "co_firstlineno", "")
    )


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("function", UNARY + SPECIAL_UNARY, ids=identify)
def test_unary(function, point, agrees_on_symbols):
    agrees_on_symbols(function, point[0], rtol=1e-9 if function in SPECIAL_UNARY else 1e-12)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("function", BINARY + SPECIAL_BINARY, ids=identify)
def test_binary(function, point, agrees_on_symbols):
    agrees_on_symbols(function, *point)


@pytest.mark.parametrize("other", [2, 0.5, True, np.float64(0.75), np.float32(0.5), np.int64(3)], ids=repr)
@pytest.mark.parametrize("function", OPERATORS, ids=identify)
def test_operators_with_numbers(function, other, agrees_on_symbols):
    for value in (0.3, 1.7):
        plain = other.item() if isinstance(other, np.generic) else other
        agrees_on_symbols(lambda a: function(a, other), np.float64(value))
        agrees_on_symbols(lambda a, plain=plain: function(a, plain), value)
        agrees_on_symbols(lambda a: function(other, a), np.float64(value))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("function", EXPRESSIONS, ids=identify)
def test_expressions(function, point, agrees_on_symbols):
    agrees_on_symbols(function, np.float64(point[0]), np.float64(point[1]))


@pytest.mark.parametrize(
    ("left", "right"), [(1.0, 0.1), (-1.0, 0.1), (7.5, 2.5), (-7.5, 2.5), (1e17, 3.0), (6.0, -0.7)]
)
def test_floor_division_has_numpys_rounding(left, right, agrees_on_symbols):
    agrees_on_symbols(lambda a, b: a // b, np.float64(left), np.float64(right))
    agrees_on_symbols(lambda a: a // 0.0, np.float64(left))


def test_bitwise_expressions_of_plain_comparisons(agrees_on_symbols):
    agrees_on_symbols(lambda a: (a > 0) & True | False, np.float64(1.0))


def as_written(scope, value):
    head = scope.graph.heads[value.node]
    return head, [scope.graph.atoms.get(node, node) for node in scope.graph.operands[value.node]]


def test_the_graph_is_as_written(scope, symbol):
    assert as_written(scope, symbol + 0) == (sp.Add, [symbol_atom(scope, symbol), sp.Integer(0)])
    assert as_written(scope, symbol * 0)[0] is sp.Mul
    assert as_written(scope, symbol**2) == (sp.Pow, [symbol_atom(scope, symbol), sp.Integer(2)])
    assert as_written(scope, symbol**2.0)[1][1] == sp.Float(2.0)
    assert as_written(scope, np.sqrt(symbol)) == (sp.Pow, [symbol_atom(scope, symbol), sp.Rational(1, 2)])
    assert as_written(scope, symbol**0.5)[1][1] == sp.Float(0.5)
    assert as_written(scope, np.square(symbol))[1][1] == sp.Integer(2)
    assert as_written(scope, -symbol) == (sp.Mul, [symbol_atom(scope, symbol), sp.Integer(-1)])
    assert as_written(scope, symbol - 3)[1][1] == sp.Integer(-3)
    quotient = as_written(scope, symbol / 3)
    assert quotient[0] is sp.Mul
    assert scope.graph.heads[quotient[1][1]] is sp.Pow  # not 1/3, which is not bitwise the same
    chosen = as_written(scope, np.where(symbol > 0, symbol, 2))
    assert chosen[0] is sp.Piecewise
    assert chosen[1][2:] == [sp.Integer(2), sp.true]


def symbol_atom(scope, symbol):
    return scope.graph.atoms[symbol.node]


def test_equal_expressions_are_one_node(symbol):
    assert (symbol + 1).node == (1 + symbol).node
    assert (np.sin(symbol) * 2).node == (2 * np.sin(symbol)).node
    assert (symbol * 2).node != (symbol * 2.0).node


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda one: one + 2, sp.Integer(3)),
        (lambda one: (one + 1) / 3, sp.Rational(2, 3)),
        (lambda one: (one + 1) ** -2, sp.Rational(1, 4)),
        (lambda one: one + 0.5, sp.Float(1.5)),
        (lambda one: (one + 1) ** 0.5, sp.Float(math.sqrt(2.0))),
        (lambda one: 2 * one // 3, sp.Integer(0)),
        (lambda one: np.sin(one * 0.5), sp.Float(math.sin(0.5))),
        (lambda one: one > 0, sp.true),
        (lambda one: np.where(one > 2, 1, 5), sp.Integer(5)),
        (lambda one: (one > 0) + (one > 2), sp.true),
        (lambda one: (one > 0) * 1.5, sp.Float(1.5)),
    ],
)
def test_plain_numbers_are_folded(function, expected, scope):
    one = scalar_of(scope, 1)
    found = scope.graph.atoms[function(one).node]
    assert (type(found), found) == (type(expected), expected)


def scalar_of(scope, number):
    return Scalar(scope.graph.number(number), scope)


def test_exact_numbers_stay_exact_under_functions(scope):
    found = np.sin(scalar_of(scope, 2))
    assert scope.graph.heads[found.node] is sp.sin  # sin(2), not a rounded float


def test_sympy_expressions_meet_traced_values(scope, symbol):
    a = sp.Symbol("a", real=True)
    for value in (
        sp.sin(2) * symbol,
        symbol * sp.sin(2),
        a + symbol,
        sp.Integer(2) - symbol,
        sp.pi / symbol,
        a**symbol,
    ):
        assert type(value) is type(symbol)
    assert (sp.sin(2) * symbol).node == (symbol * sp.sin(2)).node == np.multiply(sp.sin(2), symbol).node
    assert (a > symbol).node == (symbol < a).node
    assert (sp.Rational(1, 3) * symbol).node == (symbol * sp.Rational(1, 3)).node


def test_equality_with_what_is_no_number(symbol):
    assert (symbol == None, symbol != None, symbol == "auto", symbol != {}) == (False, True, False, True)  # noqa: E711
    assert symbol not in (None, "auto")


def test_sympy_matrices_meet_traced_values(scope, symbol):
    matrix = sp.Matrix([[1, sp.pi], [0, 2]])
    assert np.multiply(matrix, symbol).shape == (2, 2)


OF_DISTRIBUTIONS = (  # ufuncs that scipy.stats calls
    "_beta_pdf", "_beta_ppf", "_binom_pmf", "_binom_cdf", "_binom_sf", "_cauchy_ppf", "_cauchy_isf", "_kolmogc",
    "_kolmogp", "_nbinom_pmf", "_nbinom_cdf", "_nbinom_sf",
)  # fmt: skip


def test_every_row_of_the_table_is_a_ufunc():
    known = set(dir(np)) | set(dir(special)) | {"_zeta", "_riemann_zeta", "_lambertw", *OF_DISTRIBUTIONS}
    assert set(UFUNCS) | set(SEVERAL_OUTPUTS) <= known | {"clip"}


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # since NumPy 2.5
@pytest.mark.parametrize("point", [-1.7, -0.2, 0.4, 2.9])
def test_fix_rounds_towards_zero(point):
    assert sa.compile(np.fix, 1.0)(point) == math.trunc(point)


# What np.float64 has besides: memory, types, rationals, and what writes in place.
NOT_OF_SCALARS = {
    "as_integer_ratio", "base", "byteswap", "choose", "data", "dump", "dumps", "fill", "flags", "fromhex",
    "getfield", "hex", "put", "resize", "setfield", "setflags", "sort", "strides", "to_device", "tobytes", "tofile",
    "view",
}  # fmt: skip


def test_attributes_of_a_scalar(number):
    public = {name for name in dir(np.float64) if not name.startswith("_")}
    older = {"itemset", "newbyteorder", "ptp", "tostring"}
    assert {name for name in public if not hasattr(number, name)} - older == NOT_OF_SCALARS
    assert (number.flatten().shape, number.repeat(3).shape, int(number.argmax())) == ((1,), (3,), 0)


@pytest.mark.parametrize("store", [lambda a: np.put(a, [0], [5.0]), lambda a: np.place(a, [True], [5.0])])
def test_a_store_into_a_number_is_refused_by_name(store):
    def f(x):
        number = np.squeeze(x[:1]).copy()
        store(number)
        return number * x[1]

    for run in (lambda: sa.grad(f)(np.ones(3)), lambda: sa.compile(f, np.ones(3))):
        with pytest.raises(sa.errors.TraceError, match="assign"):
            run()
