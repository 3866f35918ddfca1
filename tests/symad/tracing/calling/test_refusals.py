"""Every refusal: its text names what was met, the user's line, why, and what to do."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest
import scipy.special
import sympy as sp

from symad.errors import EscapedValueError, TraceError
from symad.tracing.calling.scope import open_scope
from symad.tracing.numpy.refusals import REASONS

NUMBER = "a plain number would lose its derivative; use the NumPy function (np.sin instead of math.sin)"
NO_NUMBER = "it is no number; use numbers or NumPy arrays of them"
SYMBOLIC = r"was asked for: it depends on a symbolic value \(x\); use np.where\(condition, a, b\), or call the function"

ON_A_SCALAR = [
    (lambda x: math.sin(x), f"'math.sin(x)' asks for a float of a traced value: {NUMBER}"),
    (lambda x: math.exp(2 * x), "'math.exp(2 * x)' asks for a float of a traced value"),
    (lambda x: float(x), "'float(x)' asks for a float of a traced value"),
    (lambda x: complex(x), "'complex(x)' asks for a complex number of a traced value"),
    (lambda x: range(x), "'range(x)' asks for an integer index of a traced value"),
    (lambda x: [1, 2][x], "'[1, 2][x]' asks for an integer index of a traced value"),
    (lambda x: [1, 2][x], "write int(...), which follows the value when the function gets numbers"),
    (lambda x: x * sp.I, "the complex number I met a traced value: only real functions are differentiated"),
    (lambda x: np.multiply(x, sp.MatrixSymbol("A", 2, 2)), "the matrix expression A met a traced value"),
    (lambda x: np.multiply(x, sp.Interval(0, 1)), "a SymPy object of type Interval met a traced value"),
    (lambda x: np.fill_diagonal(np.eye(2), x), "asks for a float of a traced value"),
    (lambda x: np.put(np.ones(2), 0, x), "a traced value is stored into an ordinary float array"),
    (lambda x: np.float64(x), "asks for a float of a traced value"),
    (lambda x: np.array([x, 1.0], dtype=float), "asks for a float of a traced value"),
    (lambda x: np.random.default_rng(0).normal(x), "asks for a float of a traced value"),
    (lambda x: x + "text", f"the text 'text' met a traced value: {NO_NUMBER}"),
    (lambda x: "text" * x, f"the text 'text' met a traced value: {NO_NUMBER}"),
    (lambda x: x + None, f"a value of type NoneType met a traced value: {NO_NUMBER}"),
    (lambda x: x * {1}, f"a value of type set met a traced value: {NO_NUMBER}"),
    (lambda x: x * math.sin, "the function sin met a traced value: it was not called; write sin(...) for its value"),
    (lambda x: x * [1, [2, 3]], "a ragged nested list met a traced value: its rows differ in length"),
    (lambda x: x + np.datetime64("2020"), "a value of type datetime64 met a traced value"),
    (lambda x: x * np.array([None]), "a value of type NoneType met a traced value"),
    (
        lambda x: np.ones((1, 1)).view(np.matrix) * x,
        "a matrix met a traced value: its own rules for * or for masks would be lost",
    ),
    (lambda x: x * np.ma.array([1.0]), "a MaskedArray met a traced value"),
    (
        lambda x: x & 1,
        "a bitwise operator (& | ^ ~) on traced numbers: it is defined for truth values and integers only",
    ),
    (lambda x: -(x > 0), "the operator - on traced truth values: NumPy has no negative or difference of booleans"),
    (lambda x: (x > 0) - (x > 1), "use ~condition, or condition * 1.0 for a number"),
    (
        lambda x: np.gcd(x, 2),
        "np.gcd was called with a traced value: it is defined for integers only; write x.astype(int)",
    ),
    (lambda x: np.nextafter(x, 2), "the ufunc nextafter was called with a traced value"),
    (lambda x: scipy.special.struve(1, x), "the ufunc struve was called with a traced value"),
    (lambda x: scipy.special.struve(0, x), "the ufunc struve was called with a traced value"),
    (lambda x: pickle.dumps(x), "a traced value cannot be pickled: it belongs to a running trace; return it"),
]

STORED = (
    "a traced value is stored into an ordinary float array: the array can hold plain numbers only, and the derivative"
)
ON_A_VECTOR = [
    (lambda x: np.asarray(x, dtype=float), "asks for an ordinary float64 array of a traced value"),
    (lambda x: np.add(np.ones(3), x, out=np.zeros(3)), f"{STORED} would be lost; make the array inside the function"),
    (lambda x: np.add(x, 1, where=[True, False, True]), "np.add was called with where= and without out="),
    (lambda x: np.add.at(np.zeros(3), 0, x[0]), STORED),
    (lambda x: x.astype(complex), "astype(complex128) of a traced value: traced values are real numbers"),
    (lambda x: x.view(np.matrix), "view() of a traced array as another type"),
    (lambda x: np.linalg.norm(np.outer(x, x), 2), "np.linalg.svd was called with a traced value: only LAPACK"),
    (lambda x: np.pad(x, 1, mode="empty"), "np.pad with mode='empty' was called with a traced value"),
    (
        lambda x: np.einsum_path("i,i", x, x),
        "np.einsum_path was called with a traced value: it has no traced form; write it with elementwise",
    ),
    (lambda x: x @ 2.0, "@ with a scalar: a matrix product needs arrays; use *"),
    (lambda x: x[x[0]], "asks for an integer index of a traced value"),
    (lambda x: pickle.dumps(x), "a traced value cannot be pickled"),
]


def fails(function, argument, text):
    with pytest.raises(TraceError) as caught:
        function(argument)
    message = str(caught.value)
    assert text in message
    assert message.startswith(f"{__file__}:{function.__code__.co_firstlineno}")


def identify(value):
    return f"line{value.__code__.co_firstlineno}" if callable(value) else ""


@pytest.mark.parametrize(("function", "text"), ON_A_SCALAR, ids=identify)
def test_scalars(function, text, number):
    fails(function, number, text)


@pytest.mark.parametrize(("function", "text"), ON_A_VECTOR, ids=identify)
def test_vectors(function, text, vector):
    fails(function, vector, text)


@pytest.mark.parametrize("function", sorted(REASONS, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_functions_refused_by_name(function, vector):
    count = 2 if function.__name__ in ("histogram2d", "intersect1d", "union1d", "setdiff1d", "setxor1d") else 1
    values = ["file", vector] if "save" in function.__name__ else [vector] * count
    with pytest.raises(
        TraceError, match=f"np.*{function.__name__} was called with a traced value: {REASONS[function]}"
    ):
        function(*values)


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        (lambda x: x if x > 0 else -x, "the truth of a traced condition"),
        (lambda x: max(x, 1), "the truth of a traced condition"),
        (lambda x: x > 0 and x < 1, "the truth of a traced condition"),
        (lambda x: int(x), r"int\(\) of a traced number"),
    ],
)
def test_symbols_have_no_value(function, asked, symbol):
    with pytest.raises(TraceError, match=asked + ".*" + SYMBOLIC):
        function(symbol)


def test_a_store_into_an_ordinary_array(number):
    """NumPy raises an error of its own because of ours: whatever has indices is a sequence to it."""
    ordinary = np.zeros(3)
    with pytest.raises(ValueError, match="setting an array element") as caught:
        ordinary[0] = number
    cause = caught.value.__cause__
    assert isinstance(cause, TraceError)
    assert STORED in str(cause)
    assert str(cause).startswith(__file__)


def test_a_slice_store_into_an_ordinary_array(vector):
    ordinary = np.zeros(3)
    with pytest.raises(TraceError) as caught:
        ordinary[:] = vector
    assert STORED in str(caught.value)
    with pytest.raises(TraceError) as caught:
        ordinary[1:] = [vector[0], 2.0]
    assert STORED in str(caught.value)


def test_escaped_values(number, scope):
    with open_scope() as inner:
        kept = type(number)(number.node, inner)
        array = np.stack([kept, kept])
    for use in (lambda: kept + 1, lambda: np.sin(kept), lambda: array * 2, lambda: array[0], lambda: number + kept):
        with pytest.raises(
            EscapedValueError, match=r"a traced value was used after its derivative level closed"
        ) as caught:
            use()
        assert str(caught.value).startswith(__file__)
        assert str(caught.value).endswith("return the value from the function instead of storing it")
    assert str(kept) == "of a closed level"


def test_a_store_ties_an_array_to_the_inner_level(vector):
    with open_scope() as inner:
        vector[0] = type(vector[0])(vector[1].node, inner) * 2
    with pytest.raises(EscapedValueError):
        vector + 1


def test_two_traces_do_not_mix(number):
    met = []

    def other():
        with open_scope() as scope:
            try:
                met.append(number + type(number)(scope.graph.number(1), scope))
            except TraceError as error:
                met.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "traced values of two independent traces met: they come from different threads" in met[0]


def test_printing_never_fails(number, symbol, vector):
    expression = np.sin(symbol) * np.sin(symbol)
    assert (str(number), repr(number), f"{number:.3f}", f"{number:>7.2f}") == (
        "~0.5",
        "<traced ~0.5>",
        "~0.500",
        "~   0.50",
    )
    assert "%.2f and %s" % (number, number > 0) == "0.50 and ~True"  # noqa: UP031
    assert str(symbol + 1) == "x + 1"
    assert str(expression) == "x0*x0 where x0 = sin(x)"
    assert f"{symbol:.3f} {symbol:>4s}{number:d}" == "x    x~0.5"
    assert str(vector) == "~[ 0.5 -1.   2. ]"
    assert repr(vector[:2] * symbol) == "<traced ['0.5*x' '-1.0*x']>".replace("'0.5*x' '-1.0*x'", texts(vector, symbol))
    for _ in range(100):
        expression = np.sin(expression) * expression
    assert str(expression) == "expression of 203 nodes"


def texts(vector, symbol):
    return " ".join(repr(str(part)) for part in vector[:2] * symbol)


def test_constants_convert(scope, number):
    two = type(number)(scope.graph.number(2), scope)
    assert (float(two), int(two), complex(two), [5, 6, 7][two], bool(two)) == (2.0, 2, 2 + 0j, 7, True)
    assert np.asarray(np.add(np.zeros_like(two), [1.0, 2.0]), dtype=float).tolist() == [1.0, 2.0]


def test_copies_of_scalars_are_themselves(number):
    assert copy.copy(number) is number
    assert copy.deepcopy([number])[0] is number
    assert np.isscalar(number)
