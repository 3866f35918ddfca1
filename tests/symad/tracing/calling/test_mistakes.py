"""What a new user gets wrong, and the message that each mistake gets (`<line>` stands for the user's file:line)."""

import math
import random
import re

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import sympy as sp

import symad as sa

X = np.array([0.5, 2.0, 1.0])
OUTSIDE = np.zeros(3)
KEPT = []
GENERATOR = random.Random(1)


def forgets_to_return(x):
    x.sum()


def stores_outside(x):
    OUTSIDE[0] = x[0]
    return OUTSIDE.sum()


def keeps_a_value(x):
    KEPT.append(x[0])
    return x[1]


def uses_a_kept_value():
    sa.grad(keeps_a_value)(X)
    return KEPT[0] + 1


def loops_until_small(x):
    while x[0] > 1e-3:
        x = x / 2
    return x[0]


def is_random(x):
    return x[0] if x[0] > GENERATOR.random() else -x[0]


def returns_two_shapes(x):
    return x if x[0] > 0 else x[:1]


# name: (the mistake, the kind of error, the message)
MISTAKES = {
    "a vector function given to grad": (
        lambda: sa.grad(np.sin)(X),
        sa.errors.ArgumentError,
        "sin returned (3,) instead of one scalar: the gradient of a vector-valued function is not defined "
        "(summing it silently would hide that); use jacobian for all derivatives, vjp for one weighted sum, "
        "or return a scalar",
    ),
    "a vector function given to hessian": (
        lambda: sa.hessian(lambda x: x * x)(X),
        sa.errors.ArgumentError,
        "<lambda> returned (3,) instead of one scalar: the gradient of a vector-valued function is not "
        "defined (summing it silently would hide that); use jacobian for all derivatives, vjp for one "
        "weighted sum, or return a scalar",
    ),
    "a function without a return statement": (
        lambda: sa.grad(forgets_to_return)(X),
        sa.errors.ArgumentError,
        "<line>: forgets_to_return returned None: nothing was returned, so there is nothing to differentiate "
        "or compile; return the result; a function without a return statement returns None",
    ),
    "a text as the result": (
        lambda: sa.grad(lambda x: f"{x[0]}")(X),
        sa.errors.TraceError,
        "<line>: result of <lambda> is of type str: a text is no number; return numbers, arrays, or containers of them",
    ),
    "a complex argument": (
        lambda: sa.grad(np.sum)(np.array([1j])),
        sa.errors.ArgumentError,
        "<line>: argument a is an array of complex128: only real functions are differentiated; pass numbers, "
        "NumPy arrays, SymPy expressions, or containers of them",
    ),
    "a position that is no argument": (
        lambda: sa.grad(lambda x, y: x.sum() * y, argnums=2)(X, 1.0),
        sa.errors.ArgumentError,
        "argnums=2 for a call with 2 positional arguments; choose one of those; an argument that is passed by"
        " keyword is not differentiated",
    ),
    "a misspelled path": (
        lambda: sa.grad(lambda p: p["weight"].sum(), wrt='p["wieght"]')({"weight": X}),
        sa.errors.ArgumentError,
        'wrt=\'p["wieght"]\': no argument of <lambda> has such a part; near paths are p["weight"]',
    ),
    "tangents of another shape": (
        lambda: sa.jvp(np.sin, (X,), (np.ones(2),)),
        sa.errors.ArgumentError,
        "tangents of shape (2,): the value has shape (3,)",
    ),
    "primals that are no tuple": (
        lambda: sa.jvp(np.sin, X, X),
        sa.errors.ArgumentError,
        "primals of type ndarray: primals holds one entry for each argument of the function; pass a tuple, "
        "e.g. primals=(x,)",
    ),
    "no example arguments": (
        lambda: sa.compile(lambda x: x),
        sa.errors.ArgumentError,
        "<lambda> with 0 example arguments (missing a required argument: 'x'); give one example for each "
        "argument, of its structure and shape, such as np.zeros(3), 1.0",
    ),
    "a kernel called with another shape": (
        lambda: sa.compile(lambda x: np.sin(x), X)(np.zeros(4)),
        sa.errors.ArgumentError,
        "argument 0 (x): shape (4,): the kernel was compiled for (3,)",
    ),
    "a value in place of a function": (
        lambda: sa.grad(np.sin(0.5))(X),
        sa.errors.ArgumentError,
        "a value of type float64 in place of a function: a transform takes a function and returns one; give "
        "the function itself, and the arguments in the call after it: grad(f)(x)",
    ),
    "a function that is called too early": (
        lambda: sa.jvp(np.sin(0.5), (X,), (X,)),
        sa.errors.ArgumentError,
        "a value of type float64 in place of a function: a transform takes a function and returns one; give "
        "the function itself, and the arguments in the call after it: grad(f)(x)",
    ),
    "a misspelled mode": (
        lambda: sa.hessian(np.sum, mode="forward")(X),
        sa.errors.ArgumentError,
        "mode='forward'; use one of 'auto', 'edge', 'dyadic', 'fwd-rev', 'rev-rev', 'rev-fwd', 'fwd-fwd'",
    ),
    "storing into an array from outside": (
        lambda: sa.grad(stores_outside)(X),
        sa.errors.TraceError,
        "<line>: a traced value is stored into an ordinary float array: the array can hold plain numbers "
        "only, and the derivative would be lost; make the array inside the function, by np.zeros_like(x), "
        "np.array([...]) or np.copy(data), not data.copy()",
    ),
    "keeping a traced value": (
        lambda: uses_a_kept_value(),
        sa.errors.EscapedValueError,
        "<line>: a traced value was used after its derivative level closed: it was kept in a variable, a list"
        " or an attribute outside the differentiated function; return the value from the function instead of "
        "storing it",
    ),
    "an if on a whole array": (
        lambda: sa.grad(lambda x: x.sum() if x > 0 else 0.0)(X),
        ValueError,
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    ),
    "& between numbers": (
        lambda: sa.grad(lambda x: np.where(x[0] > 0 & x[1], x[0], 0.0))(X),
        sa.errors.TraceError,
        "<line>: a bitwise operator (& | ^ ~) on traced numbers: it is defined for truth values and integers "
        "only; compare first, and put the comparisons in parentheses: (x > 0) & (x < 1)",
    ),
    "minus before a comparison": (
        lambda: sa.grad(lambda x: (-(x > 0)).sum())(X),
        sa.errors.TraceError,
        "<line>: the operator - on traced truth values: NumPy has no negative or difference of booleans; use "
        "~condition, or condition * 1.0 for a number",
    ),
    "random numbers in a condition, compiled": (
        lambda: sa.compile(is_random, X),
        sa.errors.TraceError,
        "<line>: is_random met another condition when it was run again: the run before decided the one at "
        "<line> here, so the function depends on more than its inputs; remove random numbers and changes of "
        "state from it, or use np.where",
    ),
    "results of two shapes, compiled": (
        lambda: sa.compile(returns_two_shapes, X),
        sa.errors.ArgumentError,
        "returns_two_shapes returns shape (1,) where the condition at <line> does not hold: it returns shape "
        "(3,) where the condition at <line> holds; return the same structure and shapes on every path",
    ),
    "an if on a SymPy argument": (
        lambda: sa.grad(lambda x: x if x > 0 else -x)(sp.Symbol("a", real=True)),
        sa.errors.TraceError,
        "<line>: the truth of a traced condition (if, while, and, or, not, in, min, max) was asked for: it "
        "depends on a symbolic value (a); use np.where(condition, a, b), or call the function on numbers "
        "(compile follows both branches of an if)",
    ),
    "an eigenvalue": (
        lambda: sa.grad(lambda x: np.linalg.eigvals(np.outer(x, x))[0])(X),
        sa.errors.TraceError,
        "<line>: np.linalg.eigvals was called with a traced value: eigenvectors come from an iteration that "
        "has no traced form; use np.linalg.eigh of a symmetric matrix; for a simple eigenvalue of another one "
        "d(value) = w @ dA @ v, with left and right eigenvectors and w @ v = 1: give that rule to "
        "symad.custom_derivative",
    ),
    "a Fourier transform": (
        lambda: sa.grad(lambda x: np.fft.fft(x).sum())(X),
        sa.errors.TraceError,
        "<line>: result of <lambda> is of type ComplexArray: an ordinary array of a complex array of traced values (it "
        "has arithmetic, elementary functions, absolute values, conjugates and transforms); return numbers, arrays, "
        "or containers of them",
    ),
    "a random number with a traced parameter": (
        lambda: sa.grad(lambda x: np.random.normal(x[0]))(X),
        sa.errors.TraceError,
        "<line>: 'np.random.normal(x[0])' asks for a float of a traced value: a plain number would lose its "
        "derivative; write this step with NumPy functions: what computes with plain numbers inside a library "
        "cannot be traced",
    ),
    "an integral by SciPy": (
        lambda: sa.grad(lambda x: scipy.integrate.odeint(lambda z, t: -z * x[0], 1.0, [0, 1])[1, 0])(X),
        sa.errors.TraceError,
        "<line>: scipy.integrate.odeint was called with a traced value: it chooses its steps by plain numbers, and "
        "differentiating these would lose accuracy in silence; write its steps as plain code (a fixed number of "
        "steps of Runge and Kutta), which symad.scan takes",
    ),
    "a spline by SciPy": (
        lambda: sa.grad(lambda x: scipy.interpolate.UnivariateSpline([0, 1, 2, 3], [0, x[0], 4, 9])(0.5))(X),
        sa.errors.TraceError,
        "<line>: UnivariateSpline of traced points was called with a traced value: how smooth it is follows the "
        "residuals; give it s=0",
    ),
    "math.comb of a traced value": (
        lambda: sa.grad(lambda x: math.comb(x[0], 2))(X),
        sa.errors.TraceError,
        "<line>: 'math.comb(x[0], 2)' asks for an integer index of a traced value: a plain number would lose "
        "its derivative; write int(...), which follows the value when the function gets numbers",
    ),
    "range over a traced value": (
        lambda: sa.grad(lambda x: sum(x[k] for k in range(x[0])))(X),
        sa.errors.TraceError,
        "<line>: 'range(x[0])' asks for an integer index of a traced value: a plain number would lose its "
        "derivative; write int(...), which follows the value when the function gets numbers",
    ),
    "a complex number in the formula": (
        lambda: sa.grad(lambda x: x[0] * 1j)(X),
        sa.errors.TraceError,
        "<line>: result of <lambda> is of type ComplexArray: an ordinary array of a complex array of traced values (it "
        "has arithmetic, elementary functions, absolute values, conjugates and transforms); return numbers, arrays, "
        "or containers of them",
    ),
    "a SymPy function of a whole array": (
        lambda: sa.grad(lambda x: sp.sin(x))(X),
        sa.errors.TraceError,
        "<line>: a traced array was given to a SymPy function: SymPy functions take scalars; use the NumPy "
        "function (np.sin instead of sympy.sin), or give it one element at a time",
    ),
    "a SymPy symbol with the name of an argument": (
        lambda: sa.compile(lambda x: x * sp.Symbol("x", real=True), 1.0),
        sa.errors.ArgumentError,
        "the symbol x in the traced function: an argument has the same name, and in expressions the two could"
        " not be told apart; rename the symbol or the argument, or pass the symbol in",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_says_what_where_why_and_what_to_do(name):
    mistake, kind, message = MISTAKES[name]
    with pytest.raises(kind) as caught:
        mistake()
    assert re.sub(r"[^ ]*test_mistakes\.py:\d+", "<line>", str(caught.value)) == message
