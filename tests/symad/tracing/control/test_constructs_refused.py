"""Loops that cannot be: each is refused by name, with the user's line where there is one."""

import importlib

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad import fori_loop, scan, sum_over, vmap, while_loop

X = np.array([1.0, 2.0, 3.0])
MATRIX = np.ones((3, 2))


def grows(carry, x):
    return np.append(carry, x), None


def ragged():
    count = iter(range(1, 9))
    return lambda x: np.ones(next(count)) * x


def structures():
    count = iter(range(8))
    return lambda x: (x, x) if next(count) else [x, x]


def nothing(x):
    pass


REFUSED = {
    "a number as the function": (lambda: sum_over(3.0, X), "type float in place of a function"),
    "no function for vmap": (lambda: vmap(None), "NoneType in place of a function"),
    "no function for scan": (lambda: scan(X, 0.0, X), "in place of a function"),
    "no arrays": (lambda: sum_over(np.sin), "nothing to repeat over.*at least one array"),
    "a number as the array": (lambda: sum_over(np.sin, 2.0), r"axis 0 of x, which has shape \(\).*cannot be taken"),
    "a list as the array": (lambda: sum_over(lambda a: a, [1.0, 2.0]), r"axis 0 of a\[0\].*np\.array"),
    "a text": (lambda: sum_over(lambda a: a, "abc"), "a is of type str"),
    "complex numbers": (lambda: vmap(np.exp)(np.array([1j])), "is of type ndarray.*no array of real numbers"),
    "different lengths": (lambda: sum_over(lambda a, b: a * b, X, X[:2]), "different lengths: a has 3, b has 2"),
    "different lengths in a container": (lambda: vmap(lambda p: p)({"u": X, "v": X[1:]}), r'p\["u"\] has 3.*has 2'),
    "a shape that changes": (lambda: sum_over(ragged(), X), r"shapes \(2,\) in repetition 1.*repetition 0.*\(1,\)"),
    "a structure that changes": (lambda: vmap(structures())(X), r"\(\*, \*\).*in repetition 1.*\[\*, \*\]"),
    "None as the result of a sum": (lambda: sum_over(nothing, X), "nothing returned None"),
    "None as the result of a map": (lambda: vmap(nothing)(X), "nothing returned None"),
    "a text as the result": (lambda: sum_over(lambda a: "b", X), "returned a value of type str"),
    "a complex result": (lambda: vmap(lambda a: a * 1j)(X), "returned a value of type complex"),
    "an axis that is not there": (lambda: vmap(np.sin, in_axes=1)(X), r"axis 1 of .*shape \(3,\).*no such axis"),
    "a negative axis that is not there": (lambda: vmap(np.sin, in_axes=-2)(X), "axis -2"),
    "axes for other arguments": (lambda: vmap(np.add, in_axes=(0, 0, 0))(X, X), "in_axes.*for 2 arguments of add"),
    "no axis at all": (lambda: vmap(np.sin, in_axes=None)(X), "no argument of sin is taken apart"),
    "an axis that is no number": (lambda: vmap(np.sin, in_axes=0.5)(X), "an axis is a whole number"),
    "axes of another structure": (lambda: vmap(lambda p: p["u"], in_axes=({"v": 0},))({"u": X}), "does not fit"),
    "an output axis that is not there": (lambda: vmap(np.sin, out_axes=1)(X), r"out_axes=1 .*shape \(\)"),
    "no output axis": (lambda: vmap(np.sin, out_axes=None)(X), "out_axes=None"),
    "no pair": (lambda: scan(lambda c, x: c + x, 0.0, X), "returned a number to scan.* a pair"),
    "three results": (lambda: scan(lambda c, x: (c, x, x), 0.0, X), "the body of a scan returns a pair"),
    "a carry that grows": (lambda: scan(grows, X[:1], X), r"given the carry .*\(1,\) and returned .*\(2,\)"),
    "a carry of another structure": (lambda: scan(lambda c, x: ((c, x), x), 0.0, X), "given the carry"),
    "a carry that becomes None": (lambda: fori_loop(0, 3, lambda k, c: None, 0.0), "given the carry"),
    "a carry that becomes a truth value": (lambda: fori_loop(0, 3, lambda k, c: c > 1, 0.0), "holds a truth value"),
    "a truth value as the carry": (lambda: scan(lambda c, x: (c, x), True, X), "init holds a truth value.*carry 1.0"),
    "truth values as the carry": (lambda: while_loop(np.any, np.sin, X > 2), "init holds a truth value"),
    "a complex carry": (lambda: scan(lambda c, x: (c, x), 1j, X), "init holds a value of type complex"),
    "a text as the carry": (lambda: fori_loop(0, 2, lambda k, c: c, "a"), "init holds a value of type str"),
    "no xs and no length": (lambda: scan(lambda c, x: (c, x), 0.0), "scan without xs and length"),
    "another length than that of xs": (lambda: scan(lambda c, x: (c, x), 0.0, X, length=4), "there are to be 4"),
    "a negative length": (lambda: scan(lambda c, x: (c, x), 0.0, length=-1), "length=-1.*less than 0 times"),
    "a length that is no whole number": (lambda: scan(lambda c, x: (c, x), 0.0, length=2.0), "length is 2.0.*float"),
    "a bound that is no whole number": (lambda: fori_loop(0, 2.5, lambda k, c: c, 0.0), "upper is 2.5"),
    "a bound that is a truth value": (lambda: fori_loop(True, 2, lambda k, c: c, 0.0), "lower is True"),
    "a negative number of steps": (lambda: while_loop(np.any, np.sin, 1.0, -2), "max_steps=-2"),
    "a condition on an array": (lambda: while_loop(lambda c: c > 1, lambda c: c, X), r"shape \(3,\).*np\.any"),
    "a scan of one argument": (lambda: scan(lambda c: (c, c), 0.0, X), r"not take the arguments \(carry, x\)"),
    "a body without the counter": (lambda: fori_loop(0, 3, lambda c: c, 0.0), r"not take the arguments \(k, carry\)"),
    "a body without the carry": (lambda: while_loop(lambda c: c < 1, lambda: 1.0, 0.0), r"arguments \(carry\)"),
    "a condition without the carry": (lambda: while_loop(lambda: True, np.sin, 0.0), r"arguments \(carry\)"),
    "a number as a branch": (lambda: sa.cond(True, np.sin, 2.0, 1.0), "type float in place of a function"),
    "a condition that is None": (lambda: while_loop(lambda c: None, lambda c: c, 1.0), "returned None"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_loops_that_cannot_be(name):
    run, words = REFUSED[name]
    with pytest.raises(sa.errors.ArgumentError, match=words):
        run()


TRACED = {
    "a trip count that is traced": (lambda x: fori_loop(0, x, lambda k, c: c * 2, x), "upper is a traced value.*while"),
    "a length that is traced": (lambda x: scan(lambda c, a: (c, a), x, length=x), "length is a traced value"),
    "a carry of traced truths": (lambda x: fori_loop(0, 3, lambda k, c: c > 0, x), "truth value"),
    "traced truths at the start": (lambda x: fori_loop(0, 3, lambda k, c: c, x > 0), "init holds a truth value"),
    "a shape that changes": (lambda x: scan(grows, np.array([1.0]) * x, X)[0].sum(), r"\(1,\) and returned"),
    "different lengths": (lambda x: sum_over(lambda a, b: a * b, X * x, X[1:]), "a has 3, b has 2"),
    "a scalar": (lambda x: vmap(np.sin)(x), r"shape \(\)"),
}


@pytest.mark.parametrize("how", [sa.grad, sa.compile])
@pytest.mark.parametrize("name", TRACED)
def test_traced_loops_that_cannot_be(name, how):
    f, words = TRACED[name]
    with pytest.raises(sa.errors.ArgumentError, match=r"test_constructs_refused\.py:\d+.*" + words):
        how(f, 1.0) if how is sa.compile else how(f)(1.0)


def test_a_while_loop_without_an_end_on_symbols():
    def f(x):
        return while_loop(lambda u: u > 1, lambda u: u / 2, x)

    assert sa.grad(f)(5.0) == 0.125
    for run in (lambda: sa.trace(f, 1.0), lambda: f(sp.Symbol("x")), lambda: sa.compile(sa.grad(f), 1.0)):
        with pytest.raises(sa.WorkbenchError, match="max_steps"):
            run()


def test_an_index_outside_of_an_array():
    def f(x):
        return sum_over(lambda k: x[k + 1], range(3))

    for run in (lambda: f(X), lambda: sa.grad(f)(X), lambda: sa.compile(f, X)):
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            run()


def test_a_body_that_changes_a_module(tmp_path, monkeypatch):
    (tmp_path / "steps_taken.py").write_text("total = 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("steps_taken")
    monkeypatch.setitem(globals(), "steps_taken", module)

    def f(x):
        def body(a):
            steps_taken.total += 1  # noqa: F821
            return a * steps_taken.total  # noqa: F821

        return sum_over(body, x)

    with pytest.raises(sa.errors.TraceError, match=r"refused\.py:\d+.*changes steps_taken\.total: .*traced once"):
        sa.compile(f, X)
