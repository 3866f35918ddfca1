"""The confusion exhibit: runs of the naive designs, line by line, beside the right one; reached only by its name."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.confusion import naive
from symad.classroom.confusion.designs import NoAlias, OneTape, Right, SharedTag, Tagless
from symad.classroom.confusion.exhibit import FAMOUS, Exhibit, exhibit
from symad.classroom.confusion.watched_runs import WatchedRun, run
from symad.display.document import Columns, Marked

DESIGNS = {
    "no tag": naive.tagless,
    "shared tag": naive.shared_tag,
    "no alias": naive.no_alias,
    "one tape": naive.one_tape,
}


@pytest.fixture(scope="module")
def shown() -> dict[str, Exhibit]:
    return {name: exhibit(name) for name in FAMOUS}


@pytest.mark.parametrize("name", FAMOUS)
def test_the_right_value_by_three_routes(name: str, shown: dict[str, Exhibit]) -> None:
    """The closed form, forward mode at each level, reverse mode at each level; and the text that is shown is run."""
    famous, made = FAMOUS[name], shown[name]
    assert made.right.result == pytest.approx(famous.right, rel=1e-14)
    assert made.reverse.result == pytest.approx(famous.right, rel=1e-14)
    *before, last = famous.text.split("\n")
    names = {"d": lambda f, a: sa.derivative(f)(a), "np": np}
    exec("\n".join(before), names)
    assert eval(last, names) == pytest.approx(famous.right, rel=1e-14)


@pytest.mark.parametrize("name", FAMOUS)
def test_watching_changes_no_number(name: str, shown: dict[str, Exhibit]) -> None:
    """Each column ends with what the design gives without being watched."""
    for made in (*shown[name].wrong, shown[name].tape):
        if made.result is not None:
            assert made.result == FAMOUS[name].program(DESIGNS[made.design.name]())
        else:
            with pytest.raises((TypeError, ValueError)):
                FAMOUS[name].program(DESIGNS[made.design.name]())


# The first wrong line of each design: its name, what the innermost derivative saw (value, slope), what is right.
FIRST_WRONG = {
    ("siskind-pearlmutter", "no tag"): ("t_1", (2, 2), (2, 1)),
    ("siskind-pearlmutter", "shared tag"): None,
    ("siskind-pearlmutter", "no alias"): None,
    ("siskind-pearlmutter", "one tape"): ("t_3", (1, 0), (1, 1)),
    ("captured", "no tag"): ("t_1", (4, 5), (4, 4)),
    ("captured", "one tape"): ("t_2", (4, 0), (4, 1)),
    ("same-point", "no tag"): ("t_1", (9, 6), (9, 3)),
    ("same-point", "no alias"): ("t_1", (9, 6), (9, 3)),
    ("same-point", "one tape"): ("t_2", (3, 0), (3, 1)),
    ("difference", "no tag"): ("t_1", (0, 0), (0, -1)),
    ("difference", "no alias"): ("t_1", (0, 0), (0, -1)),
    ("amazing-bug", "no tag"): ("t_2", (11, 2), (11, 1)),
    ("amazing-bug", "shared tag"): ("t_2", (11, 2), (11, 1)),
    ("unused", "one tape"): None,
}


@pytest.mark.parametrize(("name", "design"), FIRST_WRONG, ids=" by ".join)
def test_the_first_wrong_line(name: str, design: str, shown: dict[str, Exhibit]) -> None:
    made = shown[name]
    (found,) = (one for one in (*made.wrong, made.tape) if one.design.name == design)
    difference, expected = found.first_difference(made.right), FIRST_WRONG[name, design]
    if expected is None and name != "unused":
        assert difference is None
        assert made.first_wrong(design) is None
    elif expected is not None:
        assert difference is not None
        line = made.first_wrong(design)
        assert line is found.lines[difference.line]
        seen, right = difference.seen, difference.expected
        assert (str(line.name), (seen.value, seen.slope), (right.value, right.slope)) == expected


def test_what_the_inner_derivative_saw(shown: dict[str, Exhibit]) -> None:
    """The dual numbers of the literature's example, with their epsilons."""
    columns = {
        made.design.name: _values(made)
        for made in (*shown["siskind-pearlmutter"].wrong, shown["siskind-pearlmutter"].right)
    }
    one, two, shared = "epsilon_1", "epsilon_2", "epsilon"
    assert columns["no tag"] == [f"1 + {shared}"] * 2 + [f"2 + 2 {shared}", "2", f"2 + 2 {shared}", "2"]
    assert columns["right"] == [f"1 + {one}", f"1 + {two}", f"2 + {one} + {two}", "1", f"1 + {one}", "1"]
    assert columns["shared tag"] == columns["right"]
    assert columns["no alias"] == ["x", "y", "x + y", "1", "x", "1"]


def test_an_alias_is_missing_where_y_is_x(shown: dict[str, Exhibit]) -> None:
    columns = [_values(made) for made in (*shown["same-point"].wrong, shown["same-point"].right)]
    assert columns[2] == ["x", "x", "x**2", "2*x", "2*x**2", "12"]
    assert columns[0][2] == "(9 + 3 epsilon) + (6 + epsilon) epsilon"
    assert columns[3][2] == "9 + 6 epsilon_1 + 3 epsilon_2 + epsilon_1*epsilon_2"


def test_an_adjoint_is_left_on_the_tape(shown: dict[str, Exhibit]) -> None:
    assert _values(shown["captured"].tape)[3] == "4, slope 0 in x, adjoint 1 on x"


def test_every_use_of_a_returned_function_has_its_own_parameter(shown: dict[str, Exhibit]) -> None:
    parameters = {
        made.design.name: [str(line.name) for line in made.lines if line.seen is None]
        for made in (shown["amazing-bug"].wrong[1], shown["amazing-bug"].right)
    }
    assert parameters == {"shared tag": ["u"], "right": ["u", "u_2"]}


def _values(made: WatchedRun) -> list[str]:
    found = []
    for line in made.lines:
        parts = line.value if isinstance(line.value, tuple) else (line.value,)
        found.append(
            "".join(str(part.content if isinstance(part, Marked) else part) for part in parts).replace("\u00a0", " ")
        )
    return found


OWN = {
    "sine": (lambda d: d(lambda x: x * d(lambda y: np.sin(x * y), 2.0), 0.5), lambda x: x**2 * sp.cos(2 * x), 0.5),
    "quotient": (lambda d: d(lambda x: d(lambda y: x / (1 + y**2), x), 2), lambda x: -2 * x**2 / (1 + x**2) ** 2, 2),
    "all functions": (
        lambda d: d(lambda x: d(lambda y: np.tanh(np.sqrt(x * y)) + np.log(y) - np.cos(x) * y**-2, 2 * x), 0.7),
        lambda x: sp.diff(
            sp.tanh(sp.sqrt(x * (y := sp.Symbol("y")))) + sp.log(y) - sp.cos(x) * y**-2, y
        ).subs(y, 2 * x),
        0.7,
    ),
    "three levels": (
        lambda d: d(lambda x: x * d(lambda y: y * d(lambda z: x * y * z, 1.0), x), 2.0), lambda x: 2 * x**3, 2.0,
    ),
    "negative": (
        lambda d: d(lambda x: -(np.float64(3) - x) * d(lambda y: 1 / -y, x), 2.0), lambda x: (x - 3) / x**2, 2.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_program_of_ones_own(name: str) -> None:
    program, outer, point = OWN[name]
    x = sp.Symbol("x")
    right = float(sp.diff(outer(x), x).subs(x, point))
    made = exhibit(program)
    assert made.right.result == pytest.approx(right, rel=1e-13)
    for design in (Tagless(), SharedTag(), NoAlias(), OneTape()):
        found = run(design, program)
        assert found.result is not None, found.refusal
        if found.first_difference(made.right) is None:
            assert found.result == pytest.approx(right, rel=1e-13), design.name
    assert run(SharedTag(), program).result == pytest.approx(right, rel=1e-13)


def test_designs_are_right_without_nesting() -> None:
    for design in (Tagless(), SharedTag(), NoAlias(), OneTape(), Right(), Right(reverse=True)):
        found = run(design, lambda d: d(lambda x: np.exp(2 * x) / (1 - x) ** 2, 0.25))
        assert found.result == pytest.approx(2 * math.exp(0.5) / 0.75**2 + 2 * math.exp(0.5) / 0.75**3, rel=1e-14)
        assert not found.refusal


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        ("nobody", sa.errors.ArgumentError, "the program 'nobody'; choose one of siskind-pearlmutter"),
        (3, sa.errors.ArgumentError, "a program of type int; give a function"),
        (lambda d: d(lambda x: x if x > 0 else -x, 1.0), sa.errors.TraceError, "a condition on a number"),
        (lambda d: d(lambda x: x * x, np.ones(2)), sa.errors.ArgumentError, r"d\(function, ndarray\)"),
        (lambda d: d(3.0, 1.0), sa.errors.ArgumentError, r"d\(float, float\)"),
        (lambda d: [d(lambda x: x, 1.0)], sa.errors.ArgumentError, "a program that returns list"),
        (lambda d: d(lambda x: sum([x] * 300), 1.0), sa.errors.LimitError, "more than 200 operations"),
        (
            lambda d: d(lambda x: math.exp(x), 1.0),
            sa.errors.TraceError,
            "a plain float in an exhibited program.*np.exp",
        ),
        (
            lambda d: d(lambda x: x**0.5, 1.0),
            sa.errors.TraceError,
            "a power that is no integer in an exhibited program",
        ),
        (lambda d: d(lambda x: None, 1.0), sa.errors.ArgumentError, "a function that returns NoneType in an exhibited"),
        (lambda d: d(lambda x: deep(d, x, 6), 1.0), sa.errors.LimitError, "more than 5 derivatives inside each other"),
        (lambda d: d(lambda x: np.sqrt(x), -1.0), sa.errors.ArgumentError, "a program without a right value.*nan"),
        (
            lambda d: d(lambda x: x / d(lambda y: x, x), 1.0),
            sa.errors.ArgumentError,
            "a program without a right value.*inf",
        ),
        (
            lambda d: d(lambda x: x * x + np.log(d(lambda y: x, x)), 1.0),
            sa.errors.ArgumentError,
            "without a right value.*inf",
        ),
        (lambda d: d(lambda x: np.arctan(x), 1.0), sa.errors.TraceError, "np.arctan in an exhibited program.*np.exp"),
    ],
    ids=list(range(15)),
)
def test_what_is_no_program_is_refused(program: object, error: type[Exception], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        exhibit(program)


def deep(d: naive.Derivative, x: Any, levels: int) -> Any:
    return x * d(lambda y: deep(d, y, levels - 1), x) if levels else x * x


def test_levels_that_call_themselves_and_names_of_lines() -> None:
    """x d/dx, four times: parameters of one name are told apart, from each other and from the names of lines."""
    made = exhibit(lambda d: d(lambda t: deep_in_t(d, t, 3), 2.0))
    assert made.right.result == made.reverse.result == 2**3 * 4.0
    names = [str(line.name) for line in made.right.lines]
    assert len(set(names)) == len(names)
    assert {"t", "t'2", "t_1"} <= set(names)


def deep_in_t(d: naive.Derivative, t: Any, levels: int) -> Any:
    return t * d(lambda t: deep_in_t(d, t, levels - 1), t) if levels else t * t


@pytest.mark.parametrize("name", FAMOUS)
def test_all_forms(name: str, shown: dict[str, Exhibit]) -> None:
    made = shown[name]
    columns = [block for block in made.document() if isinstance(block, Columns)]
    assert [len(block.parts) for block in columns] == [4, 2]
    assert made.text(80)
    assert "\\textcolor" in made.latex()
    assert made._repr_html_().count("<section>") == 6
    wrong = sum(one.first_difference(made.right) is not None for one in (*made.wrong, made.tape))
    assert made.html().count(">\xa0</span>".replace(">", "&gt;", 1)) == wrong  # one mark for each


def test_only_who_asks_for_the_exhibit_reaches_it() -> None:
    """No command but its own imports a wrong design, nor does symad before its name is asked for."""
    code = (
        "import sys, symad, symad.cli, pkgutil, symad.commands\n"
        "for found in pkgutil.iter_modules(symad.commands.__path__):\n"
        "    if found.name != 'confusion': __import__('symad.commands.' + found.name)\n"
        "symad.hessian, symad.explain\n"
        "bad = [m for m in sys.modules if m.startswith('symad.classroom.confusion')]\n"
        "assert not bad, bad\n"
        "symad.exhibit\n"
        "assert 'symad.classroom.confusion.naive' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not {"confusion", "naive"} & set(sa.__all__)
    assert sa.exhibit is exhibit
