"""Refusals as the one who gets them reads them: what was met, `<line>` (the user's file and line), why, what to do.

Those of the first mistakes are in `calling/test_mistakes.py`; the parts of messages in `calling/test_refusals.py`.
"""

import decimal
import json
import math
import pickle
import re
import struct

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial
import scipy.special
import scipy.stats
import sympy as sp
from msgpack._cmsgpack import unpackb

import symad as sa

X = np.array([0.5, 2.0, 1.0])


def squares(x):
    return (x * x).sum()


def catches(x):
    from math import nextafter  # noqa: PLC0415 - which has no stand-in

    try:
        return nextafter(x, 9.0)
    except TypeError:
        return 0.0


NAMES = {"np": np, "unpackb": unpackb}
TEXT = "def beside_compiled_code(x, array=np.array):\n    return unpackb(b'\\x01') * array([x[0], x[1]]).sum()"
exec(compile(TEXT, f"{__file__}.py".replace(".py.py", "") + "-test_refusal_texts.py", "exec"), NAMES)  # without source
beside_compiled_code = NAMES["beside_compiled_code"]


def assigns(x):
    x[0][0] = 1.0
    return x.sum()


# name: (what is written, the kind of error, the message)
REFUSALS = {
    "a text as the argument": (
        lambda: sa.grad(squares)("0.5"),
        sa.errors.ArgumentError,
        "<line>: argument x is of type str: a text is no number; pass numbers, NumPy arrays, SymPy "
        "expressions, or containers of them",
    ),
    "a text in a list": (
        lambda: sa.grad(lambda x: x[0])([1.0, "2"]),
        sa.errors.ArgumentError,
        "<line>: argument x[1] is of type str: a text is no number; pass numbers, NumPy arrays, SymPy "
        "expressions, or containers of them",
    ),
    "None in an array": (
        lambda: sa.grad(squares)(np.array([1.0, None])),
        sa.errors.ArgumentError,
        "<line>: argument x is an array of object: it holds a value of type NoneType; pass numbers, NumPy"
        " arrays, SymPy expressions, or containers of them",
    ),
    "None as the argument": (
        lambda: sa.grad(squares)(None),
        sa.errors.ArgumentError,
        "argnums=0: there are no numbers in it (it is of type NoneType); pass numbers, or choose another argument",
    ),
    "a truth value as the argument": (
        lambda: sa.grad(squares)(True),
        sa.errors.ArgumentError,
        "<line>: argument x is of type bool: a truth value has no derivative; pass a float, or "
        "bind it: lambda x: f(x, True); jit takes it beside numbers",
    ),
    "the point in place of argnums": (
        lambda: sa.grad(squares, X),
        sa.errors.ArgumentError,
        "argnums of type ndarray: it says which argument of the function is differentiated, by its "
        "position; give a position or a tuple of them; where to differentiate stands in the call after "
        "it: grad(f)(x)",
    ),
    "a name in place of argnums": (
        lambda: sa.hessian(squares, "x"),
        sa.errors.ArgumentError,
        "argnums='x': it says which argument of the function is differentiated, by its position; give a "
        "position or a tuple of them; where to differentiate stands in the call after it: grad(f)(x)",
    ),
    "a call without arguments": (
        lambda: sa.grad(squares)(),
        sa.errors.ArgumentError,
        "a call without positional arguments: argnums=0 is the position of the argument that is "
        "differentiated; give it by position: grad(f)(x)",
    ),
    "too many examples": (
        lambda: sa.compile(squares, X, X),
        sa.errors.ArgumentError,
        "squares with 2 example arguments (too many positional arguments); give one example for each "
        "argument, of its structure and shape, such as np.zeros(3), 1.0",
    ),
    "a misspelled option": (
        lambda: sa.compile(squares, X, acuracy="fast"),
        sa.errors.ArgumentError,
        "acuracy=...: there is no such option; did you mean accuracy?",
    ),
    "a type that no kernel computes in": (
        lambda: sa.compile(squares, X, dtype="float16"),
        sa.errors.ArgumentError,
        "dtype='float16'; use one of float64, float32, complex128",
    ),
    "a triangle that there is not": (
        lambda: sa.hessian(squares, sparse="low"),
        sa.errors.ArgumentError,
        "sparse='low'; use one of False, True, 'lower', 'upper', 'full'",
    ),
    "a negative order": (
        lambda: sa.derivative(np.sin, order=-1),
        sa.errors.ArgumentError,
        "order=-1; give a whole number, 0 or more",
    ),
    "the derivative of a function of a vector": (
        lambda: sa.derivative(squares)(X),
        sa.errors.ArgumentError,
        "an argument of shape (3,) for derivative: derivative takes a function of one scalar; use grad, "
        "jacobian or jvp",
    ),
    "a kernel given a text": (
        lambda: sa.compile(squares, X)("0.5"),
        sa.errors.ArgumentError,
        "argument 0 (x): dtype <U3: the kernel computes in float64; convert it first",
    ),
    "a kernel given complex numbers": (
        lambda: sa.compile(squares, X)(X * 1j),
        sa.errors.ArgumentError,
        "argument 0 (x): dtype complex128: the kernel computes in float64; convert it first",
    ),
    "a kernel given too little": (
        lambda: sa.compile(lambda x, y: x * y, 1.0, 1.0)(2.0),
        sa.errors.ArgumentError,
        "1 argument: the kernel takes 2: x, y",
    ),
    "more operations than allowed": (
        lambda: sa.compile(lambda x: np.sin(x).sum(), X, max_ops=2),
        sa.errors.LimitError,
        "the program: more than 2 operations: max_ops is 2; so far: 3 sin, 2 Add; raise max_ops, or make "
        "the problem smaller",
    ),
    "a symbol without a value": (
        lambda: sa.compile(lambda x: x * sp.Symbol("q", real=True), 1.0),
        sa.errors.ArgumentError,
        "<line>: the free symbol q in the traced function: it is not one of the arguments (x), so the "
        "kernel has no value for it; pass it as an argument or substitute a number",
    ),
    "rows of different lengths": (
        lambda: sa.grad(lambda x: x[0] * [1, [2, 3]])(X),
        sa.errors.TraceError,
        "<line>: a ragged nested list met a traced value: its rows differ in length; use numbers or NumPy"
        " arrays of them",
    ),
    "a number plus a text": (
        lambda: sa.grad(lambda x: x[0] + "a")(X),
        sa.errors.TraceError,
        "<line>: the text 'a' met a traced value: it is no number; use numbers or NumPy arrays of them",
    ),
    "a number plus None": (
        lambda: sa.grad(lambda x: x[0] + None)(X),
        sa.errors.TraceError,
        "<line>: a value of type NoneType met a traced value: it is no number; use numbers or NumPy arrays of them",
    ),
    "a function that was not called": (
        lambda: sa.grad(lambda x: x[0] * math.sin)(X),
        sa.errors.TraceError,
        "<line>: the function sin met a traced value: it was not called; write sin(...) for its value",
    ),
    "a number that is called": (
        lambda: sa.grad(lambda x: x[0](1.0 - x[1]))(X),
        sa.errors.TraceError,
        "<line>: a number is called like a function: it is none; write * for a product",
    ),
    "a number that is iterated over": (
        lambda: sa.grad(lambda x: sum(x[0]))(X),
        sa.errors.TraceError,
        "<line>: a number is iterated over: it has no elements; give an array or np.atleast_1d(x)",
    ),
    "the length of a number": (
        lambda: sa.grad(lambda x: x[0] * len(x[0]))(X),
        sa.errors.TraceError,
        "<line>: a number is asked for its length: it has no elements; give an array or np.atleast_1d(x)",
    ),
    "a number whose elements are assigned": (
        lambda: sa.grad(assigns)(X),
        sa.errors.TraceError,
        "<line>: an element of a number is assigned: it has none; assign to the array that it is from",
    ),
    "a traced number as a key": (
        lambda: sa.grad(lambda x: {x[0]: 1.0}[x[0]] * x[1])(X),
        sa.errors.TraceError,
        "<line>: a traced number as a key of a dict or an element of a set: a key finds what is equal to "
        "it, and equal numbers may have different derivatives; use int(x) as the key, or compare with the"
        " elements of a list or tuple",
    ),
    "the text of a traced number": (
        lambda: sa.grad(lambda x: float(f"{x[0]:.3f}"))(X),
        sa.errors.TraceError,
        "<line>: the text of a traced value is read: it is marked as traced, and no number's text; ask "
        "the value itself (np.isnan(x), x < 0, round(x, 2))",
    ),
    "a traced array that is pickled": (
        lambda: sa.grad(lambda x: pickle.loads(pickle.dumps(x)).sum())(X),
        sa.errors.TraceError,
        "<line>: a traced value cannot be pickled: it belongs to a running trace; return it",
    ),
    "a traced array that is saved": (
        lambda: sa.grad(lambda x: np.savetxt("/dev/null", x))(X),
        sa.errors.TraceError,
        "<line>: np.savetxt was called with a traced value: a traced value belongs to a running trace; "
        "return the value, and save the result",
    ),
    "a traced number as JSON": (
        lambda: sa.grad(lambda x: len(json.dumps(x[0])) * x[1])(X),
        sa.errors.TraceError,
        "<line>: what takes plain values got a traced one (Object of type float64 is not JSON "
        "serializable): the derivative would be lost in it; write this step with NumPy functions, or take"
        " it with the result, outside of the function",
    ),
    "a traced number as bytes": (
        lambda: sa.grad(lambda x: len(struct.pack("d", x[0])) * x[1])(X),
        sa.errors.TraceError,
        "<line>: 'struct.pack(\"d\", x[0])' asks for a float of a traced value: a plain number would lose "
        "its derivative; write this step with NumPy functions: what computes with plain numbers inside a "
        "library cannot be traced",
    ),
    "a traced number as a Decimal": (
        lambda: sa.grad(lambda x: float(decimal.Decimal(x[0])))(X),
        sa.errors.TraceError,
        "<line>: what takes plain values got a traced one (conversion from a traced number to Decimal is "
        "not supported): the derivative would be lost in it; write this step with NumPy functions, or "
        "take it with the result, outside of the function",
    ),
    "a text searched in a traced number": (
        lambda: sa.grad(lambda x: re.match("a", x[0]))(X),
        sa.errors.TraceError,
        "<line>: what takes plain values got a traced one (expected string or bytes-like object, got a "
        "traced number): the derivative would be lost in it; write this step with NumPy functions, or "
        "take it with the result, outside of the function",
    ),
    "the bytes of a traced array": (
        lambda: sa.grad(lambda x: len(x.tobytes()) * x[0])(X),
        sa.errors.TraceError,
        "<line>: a traced array has no attribute 'tobytes': its numbers are not known while it is traced;"
        " write it with NumPy functions",
    ),
    "a power with a modulus": (
        lambda: sa.grad(lambda x: pow(x[0], 2, 3))(X),
        sa.errors.TraceError,
        "<line>: what takes plain values got a traced one (unsupported operand type(s) for ** or pow(): a"
        " traced number, 'int', 'int'): the derivative would be lost in it; write this step with NumPy "
        "functions, or take it with the result, outside of the function",
    ),
    "np.nditer": (
        lambda: sa.grad(lambda x: sum(np.nditer(x)))(X),
        sa.errors.TraceError,
        "<line>: a traced array was given to np.nditer: it iterates over the memory of ordinary arrays; "
        "write `for value in x.flat`, or np.ndenumerate(x)",
    ),
    "np.roots": (
        lambda: sa.grad(lambda x: np.roots(x)[0])(X),
        sa.errors.TraceError,
        "<line>: np.roots was called with a traced value: the roots are eigenvalues of a matrix; "
        "symad.root finds one root, with its derivatives",
    ),
    "a polynomial fitted to traced values": (
        lambda: sa.grad(lambda x: np.polynomial.Polynomial.fit(np.arange(3.0), x, 1)(0.5))(X),
        sa.errors.TraceError,
        "<line>: numpy.polynomial.fit got a traced value (data type <class 'numpy.object_'> not inexact): it computes "
        "with plain numbers, which would lose the derivative; write this step with NumPy functions, or with those of "
        "scipy.special",
    ),
    "scipy.linalg.schur": (
        lambda: sa.grad(lambda x: scipy.linalg.schur(np.outer(x, x))[0].sum())(X),
        sa.errors.TraceError,
        "<line>: scipy.linalg.schur was called with a traced value: it comes from an iteration that has "
        "no traced form; of a symmetric matrix np.linalg.eigh has derivatives",
    ),
    "a distance without a traced form": (
        lambda: sa.grad(lambda x: scipy.spatial.distance.cdist(x[None], x[None] + 1, "hamming").sum())(X),
        sa.errors.TraceError,
        "<line>: cdist of traced points with metric='hamming': traced are euclidean, sqeuclidean, cityblock, "
        "chebyshev, cosine, correlation, minkowski, mahalanobis, seuclidean, braycurtis, canberra, jensenshannon, with "
        "VI= and V= given where they are needed; write the distance with NumPy functions",
    ),
    "a parameter of a hypergeometric function": (
        lambda: sa.grad(lambda a: scipy.special.hyp1f1(a, 1.5, 2.0))(1.5),
        sa.errors.RuleError,
        "<line>: hyp1f1 has no derivative in its operand 0 (counted from 0): its derivative in that "
        "operand is not an elementary or special function; keep that operand constant, or give a function"
        " whose derivative is known",
    ),
    "NumPy that nothing reaches, beside compiled code": (
        lambda: sa.grad(beside_compiled_code)(X),
        sa.errors.TraceError,
        "<line>: traced values would become an object array in code that calls msgpack._cmsgpack.unpackb: compiled "
        "code may take the addresses in such an array for numbers; write this step with NumPy functions, by names of "
        "your module or ones that are imported inside",
    ),
    "the order of a Bessel function": (
        lambda: sa.grad(lambda x: scipy.special.jv(x[0], 1.0))(X),
        sa.errors.RuleError,
        "<line>: besselj has no derivative in its operand 0 (counted from 0): SymPy has no formula for it"
        " but Derivative(besselj(u0, u1), u0); keep that operand constant, or give a function whose "
        "derivative is known",
    ),
    "an error that is caught": (
        lambda: sa.grad(catches)(3.0),
        sa.errors.TraceError,
        "<line>: an error was caught that plain numbers would not have raised ('nextafter(x, 9.0)' asks for a "
        "float of a traced value): the function went on at <line> as if numbers had raised it, and its "
        "result is wrong; use the NumPy function (np.sin instead of math.sin), and leave out float(...)",
    ),
    "a function compiled inside another": (
        lambda: sa.grad(lambda x: sa.compile(lambda y: y * x[0], 1.0)(x[1]))(X),
        sa.errors.TraceError,
        "<line>: traced values of two independent traces met: they come from different threads, or from a"
        " function traced or compiled on its own; pass one of them in as an argument of the function that"
        " is being differentiated; where that starts threads, let each run its work by "
        "contextvars.copy_context().run",
    ),
    "a rule that is missing": (
        lambda: sa.grad(sa.custom_derivative(lambda x: x * x))(1.0),
        sa.errors.RuleError,
        "<line>: <lambda> has no derivative: it was declared with custom_derivative and without a rule; "
        "give derivative=...",
    ),
    "a condition of a whole array": (
        lambda: sa.grad(lambda x: sa.cond(x > 0, lambda: x[0], lambda: x[1]))(X),
        sa.errors.ArgumentError,
        "<line>: a predicate of shape (3,) for cond: cond takes one of two branches, for all elements; "
        "use np.where for a choice of each element",
    ),
    "a scan whose body returns no pair": (
        lambda: sa.grad(lambda x: sa.scan(lambda c, u: c + u, 0.0, x)[0])(X),
        sa.errors.ArgumentError,
        "<line>: <lambda> returned a number to scan: the body of a scan returns a pair: the next carry, "
        "and y; return (carry, y), or (carry, None)",
    ),
    "sums over different lengths": (
        lambda: sa.grad(lambda x: sa.sum_over(lambda u, v: u * v, x, np.ones(4)))(X),
        sa.errors.ArgumentError,
        "<line>: arrays of different lengths: u has 3, v has 4: repetition k takes piece k of each",
    ),
    "a count that depends on a value": (
        lambda: sa.grad(lambda x: sa.fori_loop(0, x[0], lambda k, c: c * 2, x[1]))(X),
        sa.errors.ArgumentError,
        "<line>: upper is a traced value: how often a body is repeated is a whole number that is known "
        "while the function is traced; use while_loop with max_steps where it depends on a value",
    ),
    "a root of a function of two arguments": (
        lambda: sa.root(lambda y, p: y - p, 1.0),
        sa.errors.ArgumentError,
        "<line>: <lambda> does not take the arguments (y): missing a required argument: 'p'; give a function that "
        "does, and a value for each of its arguments",
    ),
    "a root that there is not": (
        lambda: sa.grad(lambda x: sa.root(lambda y, p: y * y + 1 + p, 1.0, x[0]))(X),
        sa.errors.ConvergenceError,
        "<line>: Newton's method does not converge: after 100 steps, or before an infinite one, the "
        "residual is 1.5; start nearer to the root, or give another solver",
    ),
    "a function in place of a kernel": (
        lambda: sa.verify(np.sin, 1.0),
        sa.errors.ArgumentError,
        "verify of an object of type ufunc: the numbers of a kernel are compared with exact ones; compile"
        " the function first: verify(compile(f, x), x)",
    ),
    "a kernel file that is not there": (
        lambda: sa.load("nowhere.symad"),
        sa.errors.ArgumentError,
        "cannot read 'nowhere.symad': No such file or directory; check the path",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_where_why_and_what_to_do(name):
    written, kind, message = REFUSALS[name]
    with pytest.raises(kind) as caught:
        written()
    assert re.sub(r"[^ ]*test_refusal_texts\.py:\d+", "<line>", str(caught.value)) == message


WRONG = {
    "root of another function": lambda: sa.root(lambda y: y, 1.0, 2.0),
    "root without numbers": lambda: sa.root(lambda y: y, None),
    "root with a solver of one argument": lambda: sa.root(lambda y: y, 1.0, solver=lambda f: 0.0),
    "fixed point of another function": lambda: sa.fixed_point(lambda: 1.0, 1.0),
    "argmin of another function": lambda: sa.argmin(lambda y, p: y * y, 1.0),
    "argmin with another constraint": lambda: sa.argmin(lambda y: y @ y, X, constraints=lambda: 1.0),
    "odeint of another function": lambda: sa.odeint(lambda y: -y, 1.0, [0.0, 1.0]),
    "odeint with time first": lambda: sa.odeint(lambda t, y: -y, 1.0, [0.0, 1.0], 2.0, tfirst=True),
    "ode of another function": lambda: sa.ode(lambda t, y: -y, [1.0], (2.0,)),
    "ode with another beginning": lambda: sa.ode(lambda t, y, k: -k * y, lambda: [1.0], (2.0,)),
    "ode with another event": lambda: sa.ode(lambda t, y: -y, [1.0], events=lambda y: y[0]),
    "a rule of no function": lambda: sa.custom_derivative(3.0),
    "keywords that a function has not": lambda: sa.jit(squares)(y=X),
    "keywords that a mapped function has not": lambda: sa.vmap(squares)(y=X),
    "a curve of no coefficients": lambda: sa.taylor(np.sin, (1.0,), (1.0,), 2, curve=3),
    "a number as indices": lambda: sa.partials(squares, (1.0,))(X),
    "a number as a pattern": lambda: sa.verify_sparsity(squares, 1, X),
    "a function to enclose": lambda: sa.enclose(squares, X),
    "a function to read": lambda: sa.read_llvm(squares),
    "a function's assembly": lambda: sa.read_assembly(squares),
    "an object as a container": lambda: sa.register_container(X, None, None),
    "no symbols": lambda: sa.from_sympy(squares, sp.Symbol("x")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused(name):
    with pytest.raises(sa.errors.ArgumentError):
        WRONG[name]()


@pytest.mark.parametrize(
    "call",
    [
        *(
            lambda name=name, made=made: made(squares, X, **{name: True})
            for made in (sa.compile, lambda f, x, **options: sa.jit(f, **options)(x))
            for name in ("max_paths", "max_ops", "max_seconds", "max_bytes", "threads")
        ),
        lambda: sa.plan(squares, X, max_paths=True),
        lambda: sa.plan(squares, X, max_bytes=True),
        lambda: sa.trace(squares, X, max_paths=True),
        lambda: sa.compile(squares, X).batch(X, threads=True),
        lambda: sa.grad(squares, True),
        lambda: sa.derivative(np.sin, True),
        lambda: sa.taylor(np.sin, (1.0,), (1.0,), True),
        lambda: sa.partials(np.sin, True, along=1.0)(1.0),
        lambda: sa.taylor(np.sin, (1.0,), None, True),
        lambda: sa.sparsity(squares, X, order=True),
        lambda: sa.verify_sparsity(squares, sa.sparsity(squares, X), X, points=True),
        lambda: sa.verify(sa.compile(squares, X), X, digits=True),
        lambda: sa.verify(sa.compile(squares, X), box=(0, 1), seed=True),
        lambda: sa.enclose(sa.compile(squares, X), X, digits=True),
        lambda: sa.growth(np.sin, 1.0, True),
        lambda: sa.compare(np.sin, 1.0, True),
        lambda: sa.while_loop(lambda y: y < 1, lambda y: y + 1, 0.0, True),
    ],
)
def test_a_truth_value_is_no_whole_number(call):
    with pytest.raises(sa.errors.ArgumentError, match=r"True|True, of type bool"):
        call()


def test_there_are_many():
    assert len({message for _, _, message in REFUSALS.values()}) >= 40


def test_a_limit_is_a_whole_number_of_any_type():
    assert sa.compile(lambda x: x if x > 0 else -x, 1.0, max_paths=np.int64(3))(-2.0) == 2.0


def test_a_name_with_escape_sequences_is_shown_by_their_numbers():
    def named(x):
        return x * 2

    named.__name__ = named.__qualname__ = "bad\x1b[31mname"
    for shown in (str(sa.plan(named, 1.0)), repr(sa.plan(named, 1.0)), repr(sa.compile(named, 1.0))):
        assert "\x1b" not in shown
        assert "bad" in shown
