"""Compiled functions of other packages never get object arrays of traced values: they are named in a refusal."""

import msgpack  # noqa: F401 (read by the text below)
import numpy as np
import pytest
from msgpack._cmsgpack import unpackb  # noqa: F401 (likewise)

import symad as sa
from symad.errors import TraceError
from symad.tracing.values.object_arrays import compiled_function_beside

X = np.array([0.5, 1.5])


def unreachable(x, array=np.array):
    return array([x[0] * x[1], x[1]]).sum()


CARELESS = """
def by_name(x, array=np.array):
    return unpackb(b"\\x01") * array([x[0] * x[1], x[1]]).sum()


def of_a_module(x, array=np.array):
    return msgpack.unpackb(b"\\x01") * array([x[0] * x[1], x[1]]).sum()


def helper(values):
    return unpackb(b"\\x01") * values.sum()


def in_a_helper(x, array=np.array):
    return helper(array([x[0] * x[1], x[1]]))


def held(x, array=np.array, function=unpackb):
    return function(b"\\x01") * array([x[0] * x[1], x[1]]).sum()
"""  # without a source that is known, so that only names are answered by stand-ins
exec(CARELESS)


def test_without_such_a_function_numpy_may_make_objects():
    assert sa.grad(unreachable)(X).tolist() == [1.5, 1.5]


@pytest.mark.parametrize("f", ["by_name", "of_a_module", "in_a_helper", "held"])
def test_a_function_beside_it_is_named(f):
    f = globals()[f]
    assert f(X) == pytest.approx(2.25)
    for differentiated in (sa.grad(f), lambda x, f=f: sa.compile(sa.grad(f), x)):
        with pytest.raises(
            TraceError, match=r"object array in code that calls msgpack\._cmsgpack\.unpackb: compiled code"
        ):
            differentiated(X)


def test_functions_of_numpy_and_python_are_none():
    import sys  # noqa: PLC0415

    def calls(values):
        return np.sum(values), sorted(values), len(values), sys.getsizeof(values), abs(values), np.linalg.inv

    def frame():
        return calls, sys._getframe()

    assert compiled_function_beside(frame()[1]) == ""
