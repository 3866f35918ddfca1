"""Routines: the IR of what is written in Python computes what Python computes."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from codegen.engine import compile_text
from codegen.errors import LoweringError
from codegen.functions.routines import Routines
from codegen.lanes import Lanes

SOURCE = '''
def collatz(n: int) -> int:
    """Steps until 1, or 40."""
    steps = 0
    while n != 1:
        if steps == 40:
            break
        if n & 1 == 0:
            n = n >> 1
        else:
            n = 3 * n + 1
        steps += 1
    return steps

def turned(a: reals, b: reals, n: int) -> real:
    total = 0.0
    for i in range(n):
        for j in range(i, n):
            a[j], b[i] = b[j], a[i] + LAST
            a, b = b, a
            total += a[j] if a[j] > b[i] or not a[i] <= 0.0 and j != i else -b[j]
        b[i] *= 2.0
    return total

def early(x: real) -> real:
    if x < 0.0:
        return -x
    if x == 0.0:
        x += 7.0
    elif x < 2.0:
        x *= 3.0
    else:
        x -= 1.0
    return x
'''
ROUTINES = Routines({"test": SOURCE}, lambda scalar: {"LAST": 0.25})


def compiled(name, *kinds):
    text = ROUTINES.compiled(f"test.{name}", Lanes()).text.replace("define internal", "define").replace("test.", "")
    library = compile_text(text, (name,), {})
    return library, ctypes.CFUNCTYPE(*kinds)(library.addresses[name])


@pytest.fixture(scope="module")
def in_python():
    names = {"real": float, "reals": list, "LAST": 0.25}
    exec(SOURCE, names)
    return names


def test_loops_end_where_python_leaves_them(in_python):
    _, found = compiled("collatz", ctypes.c_int64, ctypes.c_int64)
    assert [found(n) for n in range(1, 30)] == [in_python["collatz"](n) for n in range(1, 30)]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_variables_have_the_values_of_the_way_taken(n, in_python):
    given = np.random.default_rng(n).normal(size=(2, n))
    own, wanted = given.copy(), given.tolist()
    _, found = compiled("turned", ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    assert found(own[0].ctypes.data, own[1].ctypes.data, n) == in_python["turned"](*wanted, n)
    assert own.tolist() == wanted


@pytest.mark.parametrize("x", [-1.5, -0.0, 1.5, 3.0, math.inf])
def test_what_follows_a_return_is_the_other_way(x, in_python):
    _, found = compiled("early", ctypes.c_double, ctypes.c_double)
    assert found(x) == in_python["early"](x)


@pytest.mark.parametrize(
    ("body", "met"),
    [("return x / 2.0", "x / 2.0"), ("x = 1.0 + n", "1.0 + n"), ("return x\n x = 1.0", "x = 1.0"),
     ("import math", "import math"), ("for k in x: x = 1.0", "x"), ("sin(x)", "sin(x)"), ("x.y = 1.0", "x.y")],
)  # fmt: skip
def test_what_routines_cannot_say_is_refused(body, met):
    wrong = Routines({"test": f"def wrong(x: real, n: int) -> real:\n {body}"}, lambda scalar: {})
    with pytest.raises(LoweringError, match="routines cannot say it") as refused:
        wrong.compiled("test.wrong", Lanes())
    assert repr(met) in str(refused.value)
