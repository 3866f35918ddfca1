"""check_trace: tables by hand of six functions, right in every form, and with one error in every place."""

import itertools
import math
import random

import numpy as np
import pytest

import symad as sa

L2, S5, C5 = math.log(2), math.sin(5), math.cos(5)

# For each function: the point, a direction, lines (name, value, tangent, adjoint), and the uses of its inputs.
BY_HAND = {
    "survey": (
        lambda x1, x2: np.log(x1) + x1 * x2 - np.sin(x2), (2, 5), (1, 0),
        [("v1", L2, 0.5, 1), ("v2", 10, 5, 1), ("v3", S5, 0, -1), ("v4", L2 + 10, 5.5, 1),
         ("v5", L2 + 10 - S5, 5.5, 1)],
        {"x2": (-C5, 2 - C5), "x1": (5, 5.5)},
    ),
    "square": (lambda x: (x + 1) ** 2, (3,), (1,), [("v1", 4, 1, 8), ("v2", 16, 8, 1)], {"x": (8,)}),
    "exponential": (
        lambda x, y: x * y + np.exp(x), (0.5, 3), (1, 2),
        [("v1", 1.5, 4, 1), ("v2", math.exp(0.5), math.exp(0.5), 1),
         ("v3", 1.5 + math.exp(0.5), 4 + math.exp(0.5), 1)],
        {"y": (0.5,), "x": (math.exp(0.5), 3 + math.exp(0.5))},
    ),
    "logistic": (
        lambda x: 1 / (1 + np.exp(-x)), (1,), (1,),
        [("v1", -1, -1, 0.196612), ("v2", math.exp(-1), -math.exp(-1), -0.534447),
         ("v3", 1 + math.exp(-1), -math.exp(-1), -0.534447), ("v4", 0.7310586, 0.196612, 1)],
        {"x": (-0.196612,)},
    ),
    "norm": (
        lambda x, y: np.sqrt(x * x + y * y), (3, 4), (1, 1),
        [("v1", 9, 6, 0.1), ("v2", 16, 8, 0.1), ("v3", 25, 14, 0.1), ("v4", 5, 1.4, 1)], {"y": (0.8,), "x": (0.6,)},
    ),
    "quotient": (
        lambda x, y: x / y + y, (6, 2), (1, 3), [("v1", 3, -4, 1), ("v2", 5, -1, 1)], {"y": (1, -0.5), "x": (0.5,)},
    ),
}  # fmt: skip
BY_HAND["logistic"][4]["x"] = (0.196612,)
BY_HAND["logistic"][3][0] = ("v1", -1, -1, -0.196612)


def number(value, digits=4):
    """Write a number with some significant digits, a whole one without a point."""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.{max(1, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def table(name, mode, digits=4):
    """Return the rows by hand: (name, value, tangent), or names with values and then those of adjoints."""
    _, at, direction, lines, uses = BY_HAND[name]
    inputs = sorted(uses)
    if mode == "forward":
        rows = [(n, number(v), number(t)) for n, v, t in zip(inputs, at, direction, strict=True)]
        return rows + [(n, number(v, digits), number(t, digits)) for n, v, t, _ in lines]
    rows = [(n, number(v)) for n, v in zip(inputs, at, strict=True)] + [(n, number(v, digits)) for n, v, *_ in lines]
    rows += [(f"{n}bar", number(a, digits)) for n, _, _, a in reversed(lines)]
    return rows + [(f"{n}bar", number(a, digits)) for n, sums in uses.items() for a in sums]


def checked(name, mode, rows, **options):
    f, at, *_ = BY_HAND[name]
    return sa.check_trace(rows, f, at=at if len(at) > 1 else at[0], mode=mode, **options)


CASES = list(itertools.product(BY_HAND, ["forward", "reverse"]))


@pytest.mark.parametrize(("name", "mode"), CASES)
@pytest.mark.parametrize("digits", [2, 4, 8])
def test_right_tables(name, mode, digits):
    digits = min(digits, 5) if name == "logistic" else digits
    judged = checked(name, mode, table(name, mode, digits))
    assert {row.verdict for row in judged.rows} == {"right"}, str(judged)
    assert judged.right is True
    assert bool(judged)


def other(row, form):
    """Write a row in another form."""
    name, *numbers = row
    if form == "floats":
        return name, *map(float, numbers)
    if form == "names of typesetting":
        return (rf"\bar{{v}}_{{{name[1:-3]}}}" if name.endswith("bar") and name[0] == "v" else name, *numbers)
    if form == "other letters":
        return (name.replace("v", "w_"), *numbers)
    if form == "combining":
        return (f"{name[0]}\u0304{name[1:-3]}" if name.endswith("bar") else name, *numbers)
    return row


@pytest.mark.parametrize(("name", "mode"), CASES)
@pytest.mark.parametrize("form", ["floats", "names of typesetting", "other letters", "combining"])
def test_right_tables_in_other_forms(name, mode, form):
    rows = [other(row, form) for row in table(name, mode)]
    assert checked(name, mode, rows), str(checked(name, mode, rows))


@pytest.mark.parametrize(("name", "mode"), CASES)
@pytest.mark.parametrize("between", [" | ", "\t", "; ", "   ", " & ", ", "])
def test_right_texts(name, mode, between):
    text = "\n".join(between.join(row) for row in table(name, mode))
    assert checked(name, mode, text)
    assert checked(name, mode, "name | value | derivative\n---|---|---\n\n" + text)
    if between != ", ":
        assert checked(name, mode, text.replace(".", ","))


def test_other_tables_that_are_right():
    forward = {name: numbers for name, *numbers in table("survey", "forward")}
    assert checked("survey", "forward", forward)
    dicts = [{"name": n, "value": v, "tangent": t} for n, v, t in table("survey", "forward")]
    assert checked("survey", "forward", dicts)
    chained = "x1 = 2 | 1\nx2 = 5 | 0\nv1 = ln x1 = ln 2 | 1/2\nv2 = x1 x2 = 2*5 = 10 | v2dot = 5\nv3 = sin 5 | 0\n"
    chained += "v4 = v1 + v2 = 10.69 | v4dot = 5.5\ny = v4 - v3 = 11.65 | 5.5"
    assert checked("survey", "forward", chained)
    one_row = "x1 2 1\nx2 5 0\nv4 10.69 5.5\nv3 -0.96 0\nv5 11.65 5.5"
    assert checked("survey", "forward", one_row)
    literature = "v_{-1} 2\nv_0 5\nv_1 0.693\nv_2 10\nv_3 -0.959\nv_4 10.693\nv_5 11.652\nv̄_5 1\nv̄_4 1\nv̄_3 -1\nv̄_1 1\n"
    literature += "v̄_2 1\nv̄_0 -0.284\nv̄_{-1} 5\nv̄_0 1.716\nv̄_{-1} 5.5"
    assert checked("survey", "reverse", literature)
    counted = "v1 2 1\nv2 5 0\nv3 0.693 0.5\nv4 10 5\nv5 10.69 5.5\nv6 -0.959 0\nv7 11.65 5.5"
    assert checked("survey", "forward", counted, direction=(1, 0))
    letters = "a 0.693 0.5\nb 10 5\nc 10.69 5.5\nd -0.959 0\ny 11.65 5.5"
    assert checked("survey", "forward", letters, direction={"x1": 1, "x2": 0})
    assert checked("survey", "reverse", "dy/dv5 1\n∂y/∂v4 1\n∂y/∂x1 5.5\n∂y/∂x2 1.716")


def test_other_ways_to_split_a_sum_or_a_product():
    """v4 = v2 - v3 = 10.96 is no line of symad's, but a part of the sum."""
    rows = [("x1", 2, 1), ("x2", 5, 0), ("v1", 0.693, 0.5), ("v2", 10, 5), ("v3", -0.959, 0), ("v4", 10.96, 5)]
    judged = checked("survey", "forward", [*rows, ("v5", 11.65, 5.5)])
    assert (judged.rows[5].verdict, judged.rows[5].line, bool(judged)) == ("right", "part of v5", True)
    assert not checked("survey", "forward", [*rows[:5], ("v4", 10.97, 5), ("v5", 11.65, 5.5)])
    product = [("x", 2, 1), ("v1", 0.909, -0.416), ("v2", 7.389, 7.389), ("v3", 6.719, 3.644), ("v4", 13.44, 14.01)]
    assert sa.check_trace(product, lambda x: x * np.sin(x) * np.exp(x), at=2)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_one_error_in_every_place(name, mode):
    """No wrong row passes, and no other row is called wrong."""
    rows, tried = table(name, mode), 0
    for place, column in itertools.product(range(len(rows)), (1, 2)):
        if column >= len(rows[place]) or (mode == "forward" and rows[place][0][0] != "v" and column == 2):
            continue  # tangents of inputs are the direction
        value = rows[place][column]
        places = len(value.partition(".")[2])
        for wrong in (-float(value), float(value) + 10.0**-places, float(value) * 10, float(value) + 1, math.nan):
            if wrong == float(value):
                continue
            text = "nan" if math.isnan(wrong) else f"{wrong:.{places}f}"
            if any(text == row[0] for row in rows):
                continue
            mutated = [list(row) for row in rows]
            mutated[place][column] = text
            judged = checked(name, mode, mutated, direction=BY_HAND[name][2] if mode == "forward" else None)
            part = mode == "reverse" and [row[0] for row in rows[place + 1 :]].count(rows[place][0])
            assert not judged, (mutated[place], str(judged))
            assert judged.rows[place].verdict == "wrong", (mutated[place], part, str(judged))
            assert {row.verdict for row in judged.rows} <= {"right", "wrong"}, str(judged)
            assert [row.verdict for row in judged.rows].count("wrong") == 1, (mutated[place], str(judged))
            tried += 1
    assert tried >= 10


def test_an_error_that_is_carried_on_counts_once():
    rows = [("x1", 2, 1), ("x2", 5, 0), ("v1", 0.693, 0.5), ("v2", 7, 5), ("v3", -0.959, 0), ("v4", 7.693, 5.5)]
    judged = checked("survey", "forward", [*rows, ("v5", 8.652, 5.5)])
    assert [row.verdict for row in judged.rows] == ["right"] * 3 + ["wrong", "right", "carried", "carried"]
    assert judged.right is False
    rows = [("v4", 10.693), ("v5bar", 1), ("v4bar", 1), ("v3bar", 1), ("v1bar", 1), ("v2bar", 1), ("x2bar", 0.284)]
    rows += [("x1bar", 5), ("x2bar", 2.284), ("x1bar", 5.5), ("v5", 11.652)]
    judged = checked("survey", "reverse", rows)
    verdicts = {row.text: row.verdict for row in judged.rows}
    assert [verdicts[key] for key in ("v3bar  1", "x2bar  0.284", "x2bar  2.284", "x1bar  5.5")] == [
        "wrong", "carried", "carried", "right",
    ]  # fmt: skip


SURVEY = "v1 = ln(x1) = 0.693 | {}, v2 = x1 x2 = 10 | {}, v3 = sin(x2) = -0.959 | {}, v4 = v1 + v2 = 10.693 | {}"


def test_lines_are_those_of_the_pupil_where_their_formulas_are_written():
    """In a formula alone, v4 would be x1 x2 - sin(x2): the tangent 2.5 that follows from row 4 was called wrong."""
    text = "x1 = 2 | 1, x2 = 5 | 0, " + SURVEY.format(0.5, 2, 0, 2.5) + ", v5 = v4 - v3 = 11.652 | 2.5"
    f, at = "ln(x1) + x1 x2 - sin(x2)", {"x1": 2, "x2": 5}
    judged = sa.check_trace(text.replace(", ", "\n"), f, at=at, direction=(1, 0))
    assert [row.verdict for row in judged.rows] == ["right"] * 3 + ["wrong", "right", "carried", "carried"]
    assert [row.line for row in judged.rows] == ["x1", "x2", "v1", "v2", "v3", "v4", "v5"]
    assert "Look at row 4: v2dot = x2·x1dot + x1·x2dot." in str(judged)
    assert "10.6931, 5.5" in str(judged)
    text = (
        SURVEY.replace(" | {}", "") + ", v5 = v4 - v3 = 11.652, v5bar = 1, v4bar = 1, v3bar = 1, v2bar = 1, v1bar = 1"
    )
    judged = sa.check_trace(f"{text}, x2bar = 2.284, x1bar = 5.5".replace(", ", "\n"), f, at=at, mode="reverse")
    assert {row.text: row.verdict for row in judged.rows if row.verdict != "right"} == {
        "v3bar = 1": "wrong", "x2bar = 2.284": "carried",
    }  # fmt: skip
    assert "v3bar = -v5bar" in str(judged)


def test_lines_with_formulas_of_another_function_are_judged_by_their_numbers():
    rows = "x1 = 2 | 1, x2 = 5 | 0, " + SURVEY.format(0.5, 5, 0, 5.5).replace("v1 + v2", "v1 v2")
    judged = sa.check_trace(
        f"{rows}, v5 = v4 - v3 = 11.652 | 5.5".replace(", ", "\n"), "ln(x1) + x1 x2 - sin(x2)", at={"x1": 2, "x2": 5},
        direction=(1, 0),
    )  # fmt: skip
    assert judged.right is True


def test_what_is_missing():
    rows = table("survey", "reverse")
    judged = checked("survey", "reverse", rows[:-1])
    assert [row.verdict for row in judged.rows].count("wrong") == 1  # x1bar = 5 is only a part of the sum
    judged = checked("survey", "reverse", rows[:-4])
    assert [(row.text, row.verdict) for row in judged.rows[-2:]] == [
        ("x1 adjoint", "missing"),
        ("x2 adjoint", "missing"),
    ]
    judged = checked("survey", "forward", table("survey", "forward")[:-1])
    assert [row.text for row in judged.rows if row.verdict == "missing"] == ["v5", "v5 tangent"]
    assert "missing" in str(judged)


def test_rows_that_are_no_lines_are_asked_back():
    judged = checked("survey", "forward", [*table("survey", "forward"), ("v9", 3, 1)])
    assert (judged.rows[-1].verdict, judged.right, bool(judged)) == ("not asked for", None, False)
    assert "leave it out" in str(judged)


def test_digits_are_those_of_check_derivative():
    rows = [("x", 3, 1), ("v1", 4, 1), ("v2", 16, 8)]
    assert checked("square", "forward", rows, digits=0)
    rows = table("exponential", "forward", 3)
    assert checked("exponential", "forward", rows)
    assert not checked("exponential", "forward", rows, digits=4)
    assert not checked("exponential", "forward", rows, digits=0)
    exact = [("x", "1/2", 1), ("y", 3, 2), ("v1", "3/2", 4), ("v2", "√e", "e^(1/2)"), ("v3", "3/2 + √e", "4 + √e")]
    assert checked("exponential", "forward", exact, digits=0)


def test_own_rounded_numbers_may_be_used():
    """100 ln 2 = 69.31..., but with ln 2 = 0.69 it is 69."""
    f = lambda x: 100.0 * np.log(x)  # noqa: E731
    assert sa.check_trace([("x", 2, 1), ("v1", "0.69", "0.5"), ("v2", "69", "50")], f, at=2)
    assert not sa.check_trace([("x", 2, 1), ("v1", "0.69", "0.5"), ("v2", "68", "50")], f, at=2)


def test_formulas_and_the_transforms_of_functions():
    rows = [("x", 2), ("v1", 0.909), ("v2", 1.82), ("v2bar", 1), ("v1bar", 2), ("xbar", 0.077)]
    assert sa.check_trace(rows, "x sin x", at=2, mode="reverse")
    assert sa.check_trace(rows, "x sin x", at={"x": 2}, mode="reverse")
    assert sa.check_trace("x1 2 1\nx2 5 0\ny 11.652 5.5", "ln(x1) + x1*x2 - sin(x2)", at={"x1": 2, "x2": 5})
    slope = sa.check_trace("y 0.0770 -2.651", sa.grad(lambda x: x * np.sin(x)), at=2)
    assert slope, str(slope)


def test_permuted_rows_are_right():
    for seed, (name, mode) in enumerate(CASES):
        rows = table(name, mode)
        sums = [row for row in rows if [r[0] for r in rows].count(row[0]) > 1]
        single = [row for row in rows if row not in sums]
        random.Random(seed).shuffle(single)
        assert checked(name, mode, [*single, *sums]), name


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ("", {}, "without a row"),
        ([], {}, "without a row"),
        ("name value", {}, "without a row"),
        (3.5, {}, "a table of type float"),
        ([(1, 2, 3)], {}, "row 1"),
        ([("v1", 1, 2, 3, 4)], {}, "more than two numbers"),
        ([("v1", object())], {}, "row 1"),
        ([("v1", "2^^3")], {}, "row 1"),
        ([("2 + 3", 1)], {}, "the name"),
        ([("v1", 1.0)], {"direction": (1, 2, 3)}, "2 arguments"),
        ([("v1", 1.0)], {}, "no tangent of x1"),
        ([("v1", 1.0)], {"mode": "sideways"}, "mode"),
        ([("v1", 1.0)] * 6000, {"direction": (1, 0)}, "6000 rows"),
    ],
)
def test_tables_that_cannot_be_read(rows, options, words):
    with pytest.raises(sa.errors.ArgumentError, match=words):
        checked("survey", options.pop("mode", "forward"), rows, **options)


@pytest.mark.parametrize(
    ("f", "at", "words"),
    [
        (lambda x: abs(x), 0, "kink"),
        (lambda x: np.sqrt(x), 0, "no finite derivative"),
        (lambda x: np.log(x), -1, "no finite real value"),
        (lambda x: np.array([x, x]), 1, "scalar|single number|one number"),
        (lambda x, y: x * y, 1, "example argument"),
    ],
)
def test_functions_without_a_derivative_at_the_point(f, at, words):
    with pytest.raises(sa.errors.ArgumentError, match=words):
        sa.check_trace([("v1", 1.0, 1.0)], f, at=at)


def test_a_thousand_rows():
    def f(x):
        for _ in range(500):
            x = np.sin(x) + 1.5
        return x

    lines = sa.explain(f, at=1).lines
    value, tangent, rows = 1.0, 1.0, [("x", 1, 1)]
    for k in range(1, 1001):
        value, tangent = (math.sin(value), math.cos(value) * tangent) if k % 2 else (value + 1.5, tangent)
        rows.append((f"v{k}", value, tangent))
    assert len(lines) == 1000
    assert sa.check_trace(rows, f, at=1)
    rows[501] = ("v501", 0.5, rows[501][2])
    judged = sa.check_trace(rows, f, at=1)
    assert [row.number for row in judged.rows if row.verdict != "right"] == [502]


def test_what_is_written_twice_may_have_two_rows():
    """symad computes sin(x) once; a pupil may have two rows for it, each with a part of the adjoint."""
    f = lambda x: np.sin(x) * 3.0 + np.sin(x) ** 2  # noqa: E731
    forward = [("x", 1, 1), ("v1", 0.841, 0.540), ("v2", 2.52, 1.62), ("v3", 0.841, 0.540), ("v4", 0.708, 0.909)]
    assert sa.check_trace([*forward, ("v5", 3.23, 2.53)], f, at=1)
    reverse = [(name, value) for name, value, _ in forward] + [("v5", 3.23), ("v5bar", 1), ("v4bar", 1), ("v2bar", 1)]
    reverse += [("v3bar", 1.68), ("xbar", 0.909), ("v1bar", 3), ("xbar", 2.53)]
    judged = sa.check_trace(reverse, f, at=1, mode="reverse")
    assert "wrong" not in {row.verdict for row in judged.rows}, str(judged)
    assert not sa.check_trace([*reverse[:-1], ("xbar", 2.54)], f, at=1, mode="reverse")


@pytest.mark.parametrize(
    ("at", "words"), [((2, 5, 6), "arguments"), ({"x1": 2}, "x2|example argument"), ("two", "finite")]
)
def test_points_of_another_shape_are_refused(at, words):
    with pytest.raises(sa.errors.ArgumentError, match=words):
        sa.check_trace(table("survey", "reverse"), BY_HAND["survey"][0], at=at, mode="reverse")
