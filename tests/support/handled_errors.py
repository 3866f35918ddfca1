"""Functions with handlers: what raises, times how it is handled, compared with plain Python at several points.

`python -m tests.support.handled_errors` tries all of them on numbers, as kernels and by jit. Each is as plain Python,
or refused by an error of symad's; any other number is wrong.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

import symad as sa
from tests.support.source_texts import execute

POINTS = (0.4, 1.2, 2.6, 7.5)
RAISING = {  # an expression of a number x > 0 that may raise an error, or be refused
    "index": "TB[int(x)] * x", "list": "LIST[int(x)] * x", "take": "np.take(TB, int(x)) * x",
    "slice": "np.sum(TB[: int(x)]) * x", "reversed": "TB[::-1][int(x)] * x", "two axes": "MAT[int(x), 0] * x",
    "key": "TABLE[int(x)] * x", "get": "TABLE.get(int(x), 9.0) * x", "text key": "NAMES[str(int(x))] * x",
    "factorial": "math.factorial(int(x)) * x", "comb": "math.comb(6, int(x)) * x", "perm": "math.perm(6, int(x)) * x",
    "gcd": "math.gcd(int(x), 4) * x", "isqrt": "math.isqrt(int(x)) * x",
    "bincount": "np.sum(np.bincount([int(x)])) * x", "roll": "np.roll(TB, int(x))[0] * x",
    "repeat": "np.sum(np.repeat(TB, int(x))) * x", "range": "sum(range(int(x))) * x",
    "bytes": "bytes([int(x)])[0] * x", "chr": "len(chr(int(x))) * x", "ulp": "math.ulp(x) * x",
    "text": "float(str(x)) * x", "format": "float(f'{x:.3f}') * x", "log": "math.log(x - 1.0) * x",
    "pole": "math.pow(int(x), -1) * x", "sqrt": "math.sqrt(x - 1.0) * x",
    "acos": "math.acos(x) * x", "exp": "math.exp(400.0 * x) * 1e-300",
    "power": "(x - 1.0) ** 0.5 * x", "length": "len(x) * x", "iterated": "sum(x) * x", "called": "x(2.0)",
    "attribute": "x.spam * x", "shape": "x.shape[0] * x", "converted": "float(x) * math.sin(x)",
    "array": "np.array([x, 1.0]).sum() * x", "stored": "stored(x)", "next": "next(iter(LIST[int(x) :])) * x",
    "min": "min(LIST[int(x) :]) * x", "unpacked": "unpacked(x)", "divided": "x / (int(x) - 1) * 1.0",
    "quotient": "(7 // int(x)) * x", "raised": "raised(x)", "nested": "nested(x)", "enum": "Level(int(x)).value * x",
    "slice of text": "float('3.25'[: int(x) + 1]) * x", "linalg": "np.linalg.inv(MAT * int(x))[0, 0] * x",
}  # fmt: skip
FORMS = {
    "except": "try:\n    r = {}\nexcept:\n    r = -x",
    "Exception": "try:\n    r = {}\nexcept Exception:\n    r = -x",
    "LookupError": "try:\n    r = {}\nexcept LookupError:\n    r = -x",
    "ValueError": "try:\n    r = {}\nexcept ValueError:\n    r = -x",
    "TypeError": "try:\n    r = {}\nexcept TypeError:\n    r = -x",
    "a tuple": "try:\n    r = {}\nexcept (IndexError, KeyError, ValueError, ArithmeticError):\n    r = -x",
    "a name": "try:\n    r = {}\nexcept EXPECTED:\n    r = -x",
    "finally": "try:\n    r = {}\nfinally:\n    return r if 'r' in locals() else -x",
    "suppress": "r = -x\nwith contextlib.suppress(Exception):\n    r = {}",
    "else": "try:\n    s = {}\nexcept Exception as error:\n    r = -x\nelse:\n    r = s",
    "a caller": "def inner():\n    return {}\ntry:\n    r = inner()\nexcept Exception:\n    r = -x",
    "a loop": "r = 0.0\nfor k in range(2):\n    try:\n        r = r + {}\n    except Exception:\n        r = r - x",
}
PRELUDE = """
def stored(x):
    y = np.zeros(4)
    y[int(x)] = x * x
    return y.sum()

def unpacked(x):
    a, b = LIST[int(x) : int(x) + 2]
    return a * x + b

def raised(x):
    if x > 2:
        raise ValueError("too large")
    return x * x

def nested(x):
    try:
        return LIST[int(x)] * x
    except IndexError as error:
        raise KeyError("none") from error
"""
NAMES: dict[str, Any] = {}
execute(
    "import contextlib, enum, math\nimport numpy as np\n"
    "TB, LIST, MAT = np.linspace(0.1, 1.0, 5), [0.5, 1.5, 2.5], np.array([[2.0, 1.0], [1.0, 3.0]])\n"
    "TABLE, NAMES, EXPECTED = {0: 1.0, 1: 2.0, 2: 4.0}, {'0': 1.0, '1': 2.0}, (IndexError, KeyError, ValueError)\n"
    "class Level(enum.IntEnum):\n    LOW, MID = 1, 2\n" + PRELUDE,
    NAMES,
    "prelude",
)
Function = Callable[[float], float]


def functions() -> Iterator[tuple[str, Function]]:
    """Yield all functions, with what they are called."""
    for (what, expression), (form, text) in product(RAISING.items(), FORMS.items()):
        body = text.format(expression) + ("" if form == "finally" else "\nreturn r")
        names = dict(NAMES)
        execute("def f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines()), names, f"{what}, {form}")
        yield f"{what}, {form}", names["f"]


def _plain(f: Function, x: float) -> float | None:
    """Return what plain Python gives, None where it raises an error."""
    try:
        return float(f(x))
    except Exception:
        return None


def _error(f: Function, x: float) -> type[Exception] | None:
    """Return the class of the error that plain Python raises."""
    try:
        f(x)
    except Exception as error:
        return type(error)
    return None


def _outcome(run: Callable[[], Any], right: float | None) -> str:
    """Return what became of a call: refused, right, wrong, or an error that the function does not raise."""
    try:
        value = float(run())
    except (sa.errors.TraceError, sa.WorkbenchError):
        return "refused"
    except Exception as error:
        return "right" if right is None else f"wrong: {type(error).__name__}: {error}"
    if right is None:
        return "right" if np.isnan(value) else f"wrong: {value} for an error"
    return "right" if value == right or abs(value - right) <= 1e-12 * abs(right) else f"wrong: {value} for {right}"


def outcomes(f: Function) -> Iterator[tuple[str, str]]:
    """Yield how a function was asked, and what became of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rights = [_plain(f, x) for x in POINTS]
        for x, right in zip(POINTS, rights, strict=True):
            yield "numbers", _outcome(lambda x=x: sa.value_and_grad(f)(x)[0], right)
        try:
            kernel = sa.compile(f, 0.7)
        except sa.WorkbenchError:
            yield "kernel", "refused"
            kernel = None
        except Exception as error:  # that the function lets out for some number, and a kernel cannot raise
            own = any(_error(f, x) is type(error) for x in POINTS)
            yield "kernel", "refused" if own else f"wrong: {type(error).__name__}: {error}"
            kernel = None
        for x, right in zip(POINTS, rights, strict=True) if kernel is not None else ():
            yield "kernel", _outcome(lambda x=x: kernel(x), right)
            yield "jit", _outcome(lambda x=x: sa.jit(f)(x), right)


def main() -> None:
    """Try all of them."""
    counts = Counter[str]()
    for name, f in functions():
        counts["functions"] += 1
        for way, outcome in outcomes(f):
            counts[f"{way} {outcome.partition(':')[0]}"] += 1
            if outcome.startswith("wrong"):
                print(f"{name}: {way} {outcome}", flush=True)
    print(dict(counts))
    sys.exit(any(" wrong" in name for name in counts))


if __name__ == "__main__":
    main()
