"""Errors of a user's own function come out as they are, with the user's lines; of symad's own lines one is left."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import codegen
import symad as sa
from symad.tracing.calling.tracebacks import VARIABLE, leave_out_ours

FOLDERS = tuple(str(Path(module.__file__).parent) for module in (sa, codegen) if module.__file__)


class OddError(Exception):
    """An error that cannot be made anew from its arguments."""

    def __init__(self, code: int, *, detail: object) -> None:
        super().__init__(f"code {code}")
        self.detail = detail


class OddTypeError(TypeError):
    def __init__(self, what: str, why: str) -> None:
        super().__init__(what)
        self.why = why


def raises(x):
    raise RuntimeError("mine")


def raises_an_odd_one(x):
    raise OddError(3, detail=[1])


def raises_an_odd_type_error(x):
    raise OddTypeError("what", "why")


def looks_up(x):
    return {"a": 1.0}["b"] * x


def asserts(x):
    assert len("ab") == 3, "three letters"
    return x


def misspells(x):
    return x * undefined_name  # noqa: F821 - the mistake itself


def divides(x):
    return x * (1 / int("0"))


def indexes(x):
    return x * [1, 2][5]


def raises_from(x):
    try:
        return looks_up(x)
    except KeyError as error:
        raise RuntimeError("outer") from error


def raises_while_handling(x):
    try:
        return looks_up(x)
    except KeyError:
        raise RuntimeError("during") from None


def raises_a_group(x):
    raise ExceptionGroup("several", [ValueError("a"), TypeError("b")])


def raises_in_a_generator(x):
    def parts():
        yield x
        raise LookupError("in the generator")

    return sum(part for part in parts())


def raises_in_a_comprehension(x):
    return sum([x * (1 / zero) for zero in (1, 0)])


class Model:
    def __call__(self, x):
        return self.value(x)

    def value(self, x):
        raise OddError(4, detail=x)


def reads_bad_json(x):
    return x * json.loads("{bad")


def solves_a_singular_system(x):
    return x * np.linalg.inv(np.zeros((2, 2)))[0, 0]


def differentiates_inside(x):
    return sa.grad(lambda y: raises(y))(x)


def computes_first(x):
    y = math.sin(x)  # which takes a second run
    raise OddError(5, detail=y)


def shows_the_value(x):
    raise TypeError(f"an int is needed, not {x!r}")


def sounds_like_numpy(x):
    raise ValueError("setting an array element with a sequence")


def sounds_like_sympy(x):
    raise TypeError("cannot determine truth value of Relational")


OWN: dict[Callable[..., Any], tuple[type[BaseException], str]] = {
    raises: (RuntimeError, "mine"),
    raises_an_odd_one: (OddError, "code 3"),
    raises_an_odd_type_error: (OddTypeError, "what"),
    looks_up: (KeyError, "'b'"),
    asserts: (AssertionError, "three letters"),
    misspells: (NameError, "name 'undefined_name' is not defined"),
    divides: (ZeroDivisionError, "division by zero"),
    indexes: (IndexError, "list index out of range"),
    raises_from: (RuntimeError, "outer"),
    raises_while_handling: (RuntimeError, "during"),
    raises_a_group: (ExceptionGroup, "several (2 sub-exceptions)"),
    raises_in_a_generator: (LookupError, "in the generator"),
    raises_in_a_comprehension: (ZeroDivisionError, "division by zero"),
    Model(): (OddError, "code 4"),
    reads_bad_json: (json.JSONDecodeError, "Expecting property name enclosed in double quotes"),
    solves_a_singular_system: (np.linalg.LinAlgError, "Singular matrix"),
    differentiates_inside: (RuntimeError, "mine"),
    computes_first: (OddError, "code 5"),
    shows_the_value: (TypeError, "an int is needed, not <traced "),
    sounds_like_numpy: (ValueError, "setting an array element with a sequence"),
    sounds_like_sympy: (TypeError, "cannot determine truth value of Relational"),
}

WAYS: dict[str, Callable[..., Any]] = {
    "grad": lambda f: sa.grad(f)(3.0),
    "hessian": lambda f: sa.hessian(f)(3.0),
    "jvp": lambda f: sa.jvp(f, (3.0,), (1.0,)),
    "trace": lambda f: sa.trace(f, 3.0),
    "compile": lambda f: sa.compile(sa.grad(f), 3.0),
    "jit": lambda f: sa.jit(f)(3.0),
    "explain": lambda f: sa.explain(sa.grad(f), 3.0),
    "compare": lambda f: sa.compare(f, 3.0),
}


def named(value: Any) -> str:
    return getattr(value, "__name__", "") if callable(value) else ""


def is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(FOLDERS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", OWN, ids=named)
def test_they_come_out_with_their_lines(function: Callable[..., Any], way: str) -> None:
    kind, text = OWN[function]
    with pytest.raises(kind) as plain:
        function(3.0)
    with pytest.raises(kind) as caught:
        WAYS[way](function)
    assert type(caught.value) is kind
    assert text in str(caught.value)
    found = traceback.extract_tb(caught.value.__traceback__)
    users = [
        (each.filename, each.lineno) for each in traceback.extract_tb(plain.value.__traceback__) if not is_ours(each)
    ]
    assert [(each.filename, each.lineno) for each in found if not is_ours(each)][-len(users) + 1 :] == users[1:]
    ours = [k for k, each in enumerate(found) if is_ours(each)]
    assert len(ours) == (2 if function is differentiates_inside else 1)
    assert all(b - a > 1 for a, b in pairwise(ours))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_behind_them_stays(way: str) -> None:
    with pytest.raises(RuntimeError, match="outer") as caught:
        WAYS[way](raises_from)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ExceptionGroup) as group:
        WAYS[way](raises_a_group)
    assert [type(each) for each in group.value.exceptions] == [ValueError, TypeError]
    with pytest.raises(OddError) as odd:
        WAYS[way](raises_an_odd_one)
    assert odd.value.detail == [1]


def test_the_line_that_is_left_says_how_to_see_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> list[traceback.FrameSummary]:
        with pytest.raises(RuntimeError) as caught:
            sa.grad(raises)(3.0)
        return [each for each in traceback.extract_tb(caught.value.__traceback__) if is_ours(each)]

    (only,) = shown()
    line = "return _isolated(f, *args, **keywords)  # lines of symad's are left out: SYMAD_TRACEBACK=full shows them"
    assert only.line == line
    monkeypatch.setenv(VARIABLE, "full")
    assert len(shown()) > 10


def test_refusals_have_one_line_of_ours_too() -> None:
    with pytest.raises(sa.errors.TraceError) as caught:
        sa.grad(lambda x: x + "a")(3.0)
    assert sum(map(is_ours, traceback.extract_tb(caught.value.__traceback__))) == 2  # where it is called, and refused


def test_a_defect_keeps_all_lines() -> None:
    def defect() -> None:
        raise sa.errors.InvariantError("a defect")

    with pytest.raises(sa.errors.InvariantError) as caught:
        defect()
    before = caught.value.__traceback__
    leave_out_ours(caught.value)
    assert caught.value.__traceback__ is before


def raises_after_ours(x):
    from math import nextafter  # noqa: PLC0415 - which has no stand-in

    try:
        return nextafter(x, 9.0)
    except TypeError as error:
        raise ValueError("no neighbour") from error


def packs(x):
    from struct import pack  # noqa: PLC0415

    return x * len(pack("d", x))


@pytest.mark.parametrize(
    ("function", "line", "text"),
    [
        (
            raises_after_ours,
            4,
            "an error was caught that plain numbers would not have raised ('nextafter(x, 9.0)' asks for a float",
        ),
        (packs, 3, "'pack(\"d\", x)' asks for a float of a traced value"),
    ],
    ids=named,
)
def test_what_only_traced_values_raise_is_no_error_of_the_users(function: Any, line: int, text: str) -> None:
    for make in (WAYS["grad"], WAYS["compile"]):
        with pytest.raises(sa.errors.TraceError) as caught:
            make(function)
        assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno + line}: {text}")


def test_in_a_script_only_the_users_lines_are_printed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import symad as sa\n\n\ndef model(x):\n    return helper(x)\n\n\ndef helper(x):\n"
        "    raise KeyError('no such thing')\n\n\nsa.grad(model)(1.0)\n"
    )
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env=os.environ | {VARIABLE: ""}
    )
    lines = [line.strip() for line in run.stderr.splitlines() if line.lstrip().startswith("File")]
    assert [line.rpartition(", in ")[2] for line in lines] == ["<module>", "public_function", "model", "helper"]
    assert run.stderr.splitlines()[-1] == "KeyError: 'no such thing'"
