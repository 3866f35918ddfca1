"""The campaign on foreign code (`python -m tests.foreign`), on functions as packages write them: right or refused."""

from itertools import islice, pairwise
from math import exp, isclose, log, nextafter

import numpy as np
import pytest

from tests.foreign import WAYS, main, outcome
from tests.support.foreign_calls import call_of, calls_of
from tests.support.foreign_checks import Slopes, exact_slopes
from tests.support.foreign_corpora import document, scipy_calls

TABLE = [(0.0, 1.0), (0.5, 1.4), (1.0, 2.2), (2.0, 2.9)]


def truncated(x, y, largest=1e308):
    """An exponential that never overflows.

    >>> truncated(0.25, 1.5)
    1.9260...
    """
    try:
        return exp(x) * y
    except Exception:
        return largest


def looked_up(x):
    """A table between whose points lines are drawn.

    >>> looked_up(0.7)
    1.72
    """
    for (left, low), (right, high) in pairwise(TABLE):
        if left <= x <= right:
            return low + (high - low) * (x - left) / (right - left)
    raise ValueError("outside of the table")


def by_a_secant(a, b):
    """The root of y exp(y) = a + b: steps that stop when they are small, errors of the function caught.

    >>> by_a_secant(1.5, 0.25)
    0.79...
    """
    old, new = 0.1, 1.0
    for _ in range(50):
        try:
            slope = ((new * exp(new)) - (old * exp(old))) / (new - old)
        except ZeroDivisionError:
            return new
        old, new = new, new - (new * exp(new) - (a + b)) / slope
        if isclose(old, new, rel_tol=1e-13):
            break
    return new


def of_a_mixture(zs, constants):
    """Rules of a mixture, with a dict of numbers that has more than is used.

    >>> of_a_mixture([0.2, 0.3, 0.5], {"a": 2.0, "b": [1.0, 2.0, 0.5]})
    (0.55125, 3.081...)
    """
    total = sum(zs)
    fractions = [z / total for z in zs]
    mean = sum([z * b for z, b in zip(fractions, constants["b"], strict=True)])
    entropy = -sum([z * log(z) for z in fractions if z > 0.0])
    return mean**2 / constants["a"], entropy * mean + constants["a"]


def largest_part(xs):
    """The largest of some numbers, from an array that is made here.

    >>> largest_part([1.5, 3.25, 2.0])
    9.5625
    """
    parts = np.array([x * x - 1.0 for x in xs])
    return float(np.max(np.maximum(parts, 0.0))) if len(parts) else 0.0


def with_kind(x, kind="water"):
    """A choice by name, whose constants are looked for, and found by what is caught.

    >>> with_kind(300.0, kind="air")
    0.4...
    """
    try:
        a, b = {"water": (1.2, 3.0), "air": (1.5, 350.0)}[kind]
    except KeyError:
        return None
    return a * exp(-b / x)


def at_a_switch(x, d):
    """Equal diameters have no loss.

    >>> at_a_switch(2.0, 2.0)
    0.0
    """
    return 0.0 * x if x == d else (x - d) * 3.0


def by_its_type(x):
    """A number is not what an array is, also where `math` makes the function run again.

    >>> by_its_type(0.5)
    1.6487...
    """
    return exp(x) if isinstance(x, (int, float)) and isinstance(x, np.float64 | float) else 3.0 * exp(x)


def sidereal_time(day, century):
    """An angle of a huge one, whose digits differences do not have.

    >>> sidereal_time(1.427051, 0.8541019999999999)
    36.772...
    """
    return (280.5 + 360.98564736629 * (day - 2451545.0) + 0.000387933 * century**2) % 360.0


def real_roots(b, c):
    """Roots that are complex on the path that the numbers do not take.

    >>> real_roots(2.0, 0.5)
    (-0.29..., -1.70...)
    """
    inner = b * b - 4.0 * c
    if inner < 0.0:
        return complex(-1.0, 2.0), complex(-1.0, -2.0)
    return (-b + inner**0.5) / 2.0, (-b - inner**0.5) / 2.0


def cubic(x, y):
    """Smooth everywhere.

    >>> cubic(1.5, 0.25)
    0.90625
    """
    return x**3 * y + y**3 * 4.0


def not_for_zero(x):
    """It raises what mistakes raise, where it is 0.

    >>> not_for_zero(1.5)
    2.25
    """
    return x * x if x != 0.0 else [x][1]


def not_to_be_helped(x):
    """What only a number answers, and an error of that caught.

    >>> not_to_be_helped(0.5)
    0.2500...
    """
    try:
        return nextafter(x, 9.0) ** 2
    except TypeError:
        return 0.0


EXPECTED = {
    truncated: "right", looked_up: "right", of_a_mixture: "right", largest_part: "right", with_kind: "right",
    by_its_type: "right", at_a_switch: "switch", not_to_be_helped: "refused",
    sidereal_time: "rounding", real_roots: "right",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", EXPECTED, ids=lambda f: f.__name__)
def test_shapes_of_foreign_code(function, way):
    call = call_of(function.__name__, function)
    assert call is not None
    found = outcome(call, way)
    assert found.kind == EXPECTED[function], found.text


def test_iterations_that_stop_are_followed_at_a_point():
    call = call_of("by_a_secant", by_a_secant)
    assert call is not None
    assert outcome(call, "interpreted").kind == "right"


@pytest.mark.parametrize(("way", "kind"), [("interpreted", "right"), ("compiled", "raises")])
def test_what_a_function_raises_on_another_path_is_its_own(way, kind):
    call = call_of("not_for_zero", not_for_zero)
    assert call is not None
    found = outcome(call, way)
    assert found.kind == kind, found.text


def test_a_wrong_derivative_is_found():
    """Rounding to six digits hides the derivative from everything but differences of large steps."""

    def wrong(x):
        """>>> wrong(0.5)
        0.25
        """
        return x * x if not str(x).startswith("~") else 3.0 * x * x

    call = call_of("wrong", wrong)
    assert call is not None
    assert outcome(call, "interpreted").kind == "wrong"


def test_functions_of_a_package_are_found():
    names = {call.name for call in calls_of("tests.symad.tracing.calling.test_foreign")}
    assert {name.rpartition(".")[2] for name in names} >= {function.__name__ for function in EXPECTED}


def test_what_a_package_only_shows_is_not_drawn(tmp_path, monkeypatch):
    """SciPy's functions are SciPy's to test: with drawn numbers some of them end the process."""
    package = tmp_path / "shows_others"
    package.mkdir()
    (package / "__init__.py").write_text("from statistics import fmean, NormalDist\nfrom .own import doubled\n")
    (package / "own.py").write_text("def doubled(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [call.name for call in calls_of("shows_others")] == ["shows_others.own.doubled"]


def test_the_campaign_counts_what_became_of_functions(capsys):
    assert main(["tests.symad.tracing.calling.test_foreign", "--only", "looked_up", "--seconds", "60"]) == 0
    assert ", compiled: 1 right" in capsys.readouterr().out


def test_slopes_are_compared_with_complex_steps_and_many_digits():
    """A smooth function takes complex numbers; one with `math` is evaluated at 50 digits; a kink has neither."""
    smooth = call_of("cubic", cubic)
    by_math = call_of("looked_up", looked_up)
    for call, check in ((smooth, "complex steps"), (by_math, "50 digits")):
        assert call is not None
        exact = exact_slopes(call)
        assert outcome(call, "compiled", exact).check == check
        wrong = Slopes(
            *(
                None if slopes is None else tuple(1.001 * s for s in slopes)
                for slopes in (exact.complex_steps, exact.many_digits)
            )
        )
        assert outcome(call, "interpreted", wrong).check == "differences"


def test_the_page_counts_records():
    """Right ones by their check, others by kind; what is wrong is named, refusals by their cause."""
    ways = {
        "interpreted": ["right", "", "50 digits"],
        "compiled": ["refused", "TraceError: a.py:1: g was called: why; do", ""],
    }
    wrong = {"interpreted": ["wrong", "value 1 for 2", ""], "compiled": ["right", "", "complex steps"]}
    records = [
        {"corpus": "ht", "version": "1.0", "name": name, "arguments": 1, **kinds}
        for name, kinds in (("ht.f", ways), ("ht.g", wrong))
    ]
    page = document(records, "2026-11-27")
    assert "| ht 1.0 | 2 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |" in page
    assert "| ht 1.0 | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in page
    assert "| `ht.g` | interpreted | wrong | value 1 for 2 |" in page
    assert "| TraceError: g was called | 0 | 1 | `ht.f` |" in page


def test_calls_of_the_scipy_table_are_a_corpus():
    calls = {call.name: call for call in islice(scipy_calls(), 3)}
    assert len(calls) == 3
    assert all(outcome(call, "interpreted").kind == "right" for call in calls.values())
