"""The tables of docs/comparisons.md are those that `compare` makes, and the text says what is in them."""

from __future__ import annotations

import re

import pytest

from tests.support.comparison_table import CASES, PAGE, TABLES, compared

PAGE_TEXT = PAGE.read_text(encoding="utf-8")
ERRORS = ("ULP", "ULP: sympy.diff", "ULP: AD", "ULP: central")


def cells(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table in a text, header first."""
    lines = [line for line in table.splitlines() if line.startswith("|") and not line.startswith("|--")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def on_page(name: str) -> str:
    """Return what the page has between the comments of a table."""
    (found,) = re.findall(rf"<!-- {name} -->\n(.*?)<!-- end -->", PAGE_TEXT, flags=re.DOTALL)
    return found


def same_error(left: str, right: str) -> bool:
    """Whether errors are equal up to what another processor or C library may round differently."""
    if "" in (left, right):
        return left == right
    a, b = float(left), float(right)
    return max(a, b) < 40 or 1 / 50 < a / b < 50


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.thinned
def test_the_page_is_up_to_date(name):
    """To be made anew with `python -m tests.support.comparison_table`."""
    written, made = cells(on_page(name)), cells(TABLES[name]())
    assert written[0] == made[0]
    assert len(written) == len(made)
    for old, new in zip(written[1:], made[1:], strict=True):
        for column, left, right in zip(written[0], old, new, strict=True):
            same = same_error(left, right) if column in ERRORS else left == right
            assert same, (old[0], column, left, right)


def test_errors_are_compared_with_room_for_rounding_only():
    assert same_error("0.5", "3")
    assert same_error("1e+17", "4e+17")
    assert not same_error("1e+17", "0.1")
    assert not same_error("", "0.1")


def test_two_swell_and_two_cancel():
    swell = [name for name in CASES if compared(name)["sympy.diff, codegen"].sizes.swell > 100]
    cancel = [name for name in CASES if compared(name)["sympy.diff, codegen"].verdict == "inaccurate"]
    assert swell == ["tower", "logistic"]
    assert cancel == ["cosine", "expanded", "softplus"]
    assert len(CASES) == 10


def test_no_route_is_wrong_and_none_fails():
    for name in CASES:
        assert compared(name).wrong == ()
        assert all(row.verdict not in ("failed", "no number", "no derivative") for row in compared(name).rows), name


def test_what_the_text_says():
    """Each number that the text draws a conclusion from."""
    numbers = {name: {row.route: row for row in compared(name).rows} for name in CASES}
    assert (numbers["plain"]["sympy.diff, codegen"].operations, numbers["plain"]["AD FR"].operations) == (
        4,
        10,
    )
    assert numbers["Bell"]["AD FFFFF"].operations < numbers["Bell"]["Taylor"].operations
    assert numbers["network"]["AD R"].operations < numbers["network"]["AD F"].operations
    assert numbers["tower"]["AD R"].sizes.tree > numbers["tower"]["sympy.diff, lambdify"].sizes.tree
    cosine = numbers["cosine"]
    assert cosine["AD FF"].values[0] == pytest.approx(-1.66, abs=0.01)
    assert cosine["AD FF"].values[0] == pytest.approx(cosine["AD RR"].values[0], rel=1e-6)
    assert cosine["Richardson"].digits > 4 > 1 > cosine["AD FF"].digits
    assert all(row.digits < 4 for row in numbers["expanded"].values())
    assert numbers["softplus"]["AD FR"].ulp < 2
    assert numbers["hypot"]["AD FR"].lost == 0 < numbers["hypot"]["sympy.diff, lambdify"].lost
    assert numbers["hypot"]["differences central"].lost == 4
    assert "probability" in numbers["product"]["AD edge"].reason
