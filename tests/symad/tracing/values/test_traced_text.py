"""The text of traced values is printed and kept; where the function reads it, it is refused."""

import contextlib
import pprint

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError


def from_text(x):
    try:
        return float(str(x))
    except ValueError:
        return 0.0


def from_rounded_text(x):
    with contextlib.suppress(ValueError):
        return float(f"{x:.3f}") + x
    return 0.0


READ = {
    "float": from_text,
    "rounded": from_rounded_text,
    "int": lambda x: int(f"{x:.0f}") * x,
    "sign": lambda x: x if str(x).startswith("-") else 2 * x,
    "first": lambda x: x if repr(x)[0] == "-" else 2 * x,
    "NaN": lambda x: 0.0 if str(x) == "nan" else x,
    "among": lambda x: 0.0 if str(x) in ("nan", "inf") else x,
    "exponent": lambda x: 0.0 if "e" in f"{x}" else x,
    "digits": lambda x: x * len(str(x).split(".")[1]),
    "memo": lambda x: {str(x): x}[str(x)],
    "array": lambda x: x * sum(float(part) for part in str(np.stack([x, x])).split()),
}


@pytest.mark.parametrize("made", [sa.grad, lambda f: sa.compile(f, 1.0)], ids=["grad", "compile"])
@pytest.mark.parametrize("name", READ)
def test_text_that_is_read_is_refused(name, made):
    with pytest.raises(TraceError, match=r"test_traced_text\.py:\d+: .*the text of a traced value is read"):
        made(READ[name])(-1.5)


@pytest.mark.parametrize("made", [sa.grad, lambda f: lambda x: sa.compile(sa.grad(f), x)(x)], ids=["grad", "compile"])
def test_text_that_is_printed_is_not(made, capsys):
    def f(x):
        pair = np.stack([x, x])
        print(x, f"{x:.3f}", repr(x), pair, f"{pair}", "%s" % x, str(x).rjust(20), sep="|")  # noqa: UP031
        pprint.pprint([x, pair])
        kept = {"x": str(x), "all": ", ".join([str(x), repr(pair)])}
        return x ** len(kept)

    assert made(f)(-1.5) == -3.0
    assert "traced" in capsys.readouterr().out


def test_text_of_a_value_at_a_point_says_what_it_is():
    shown = []
    sa.grad(lambda x: (shown.extend([str(x), f"{x:.2f}", repr(x)]), x)[1])(1.5)
    assert shown == ["~1.5", "~1.50", "<traced ~1.5>"]
    with pytest.raises(ValueError, match=r"could not convert string to float: '~1\.5'"):
        float(shown[0])
