"""Elements of lists and rows of arrays at places that are not known: chosen, set, and seen after stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.errors import UnboundSymbolError
from symad.tracing.values import known_numbers

RNG = np.random.default_rng(11)


def row_seen_after_stores(x):
    y = np.array([[1.0, 2.0], [3.0, 4.0]]) * x[0]
    row = y[int(x[0] > 1)]
    y[0, 1] = 7 * x[1]
    y[1, 0] = 5 * x[2]
    return row[0] + 10 * row[1]


def views_of_a_row(x):
    y = np.array([[1.0, 2.0], [3.0, 4.0]]) * x[0]
    place = int(x[1] > 1)
    row = y[place]
    backward, copy, last = row[::-1], row.copy(), y[place][1:]
    np.copyto(y[0], y[1] * x[2])
    y[:, 1] += x[1]
    y.sort(axis=1)
    return row[0] + 10 * backward[0] + 100 * copy[0] + 1000 * last[0]


def row_of_a_row(x):
    y = np.arange(12.0).reshape(3, 2, 2) * x[0]
    first = y[int(x[1] > 1)]
    second = first[int(x[2] > 1)]
    y[1] = y[1] * x[1]
    y[0, 1] = x[2]
    return second[0] + 10 * second[1] + 100 * first[0, 0]


def largest_doubled(x):
    values, best = list(x), 0
    for k in range(1, len(values)):
        if values[k] > values[best]:
            best = k
    values[best] = values[best] * 2
    values[best - 1] += 0.5
    return sum((k + 1) * value for k, value in enumerate(values))


def pivots_by_rows(x):
    """The determinant of a matrix, by elimination of rows that change places in a list."""
    rows = [np.concatenate([x[k:], x[:k]]) + np.eye(len(x))[k] * 0.1 for k in range(len(x))]
    sign = 1.0
    for k in range(len(rows)):
        pivot = k
        for i in range(k + 1, len(rows)):
            if abs(rows[i][k]) > abs(rows[pivot][k]):
                pivot = i
        rows[k], rows[pivot] = rows[pivot], rows[k]
        if pivot != k:
            sign = -sign
        for i in range(k + 1, len(rows)):
            rows[i] = rows[i] - rows[i][k] / rows[k][k] * rows[k]
    return sign * np.prod([row[k] for k, row in enumerate(rows)])


FUNCTIONS: list[tuple[Callable[[Any], Any], int]] = [
    (row_seen_after_stores, 3), (views_of_a_row, 3), (row_of_a_row, 3), (largest_doubled, 12), (pivots_by_rows, 6),
]  # fmt: skip


@pytest.mark.parametrize(("function", "size"), FUNCTIONS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_values_and_slopes_are_those_on_numbers(function: Callable[[Any], Any], size: int) -> None:
    points = RNG.uniform(0.2, 2.0, (6, size))
    kernel = sa.compile(sa.value_and_grad(function), points[0])
    for x in points:
        value, slopes = kernel(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-11)
        np.testing.assert_allclose(slopes, sa.grad(function)(x), rtol=1e-9, atol=1e-11)


def test_the_determinant_is_numpys() -> None:
    x = RNG.uniform(0.2, 2.0, 6)
    rows = [np.concatenate([x[k:], x[:k]]) + np.eye(6)[k] * 0.1 for k in range(6)]
    np.testing.assert_allclose(sa.compile(pivots_by_rows, x)(x), np.linalg.det(rows), rtol=1e-11)


def stores_into_a_chosen_row(x):
    rows, best = [x * 1.0, x * 2.0, x * 3.0], 0
    for k in range(len(x)):
        if x[k] > x[best]:
            best = k
    row = rows[best % 3]
    row[0] = 5.0
    return row[0] + rows[0][0]


def test_what_is_stored_into_a_chosen_row_is_no_silent_copy() -> None:
    x = RNG.uniform(0.2, 2.0, 9)
    with pytest.raises(sa.WorkbenchError, match="stored into what an index whose value is not known picks"):
        sa.compile(stores_into_a_chosen_row, x)


def test_a_row_that_nobody_has_any_more_is_not_picked_again() -> None:
    kept = []

    def f(x):
        y = np.arange(12.0).reshape(6, 2) * x
        total = 0.0
        for k in range(6):
            row = y[int(x + k) % 6]
            total = total + row[0] * row[1]
            y[k] = y[k] + x
            kept.append(len(y.scope.graph.arrays.views))
        return total

    kernel = sa.compile(f, 1.3)
    assert max(kept) == 2  # that of the round before is there until `row` is the next one
    assert kernel(2.6) == pytest.approx(f_of_numbers(2.6), rel=1e-14)


def f_of_numbers(x):
    y, total = np.arange(12.0).reshape(6, 2) * x, 0.0
    for k in range(6):
        total += np.prod(y[int(x + k) % 6])
        y[k] += x
    return total


def test_a_place_that_depends_on_symbols_is_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may depend on all of a long trace, and a search asks for places again and again."""
    without_value = []
    evaluated = known_numbers.values_of_nodes

    def noted(graph: Any, nodes: Any, values: Any) -> Any:
        try:
            return evaluated(graph, nodes, values)
        except UnboundSymbolError:
            without_value.append(nodes)
            raise

    def largest(x: Any) -> Any:
        place = 0
        for k in range(1, len(x)):
            if x[k] > x[place]:
                place = k
        return x[place] * x[0]

    x = RNG.uniform(0.2, 2.0, 9)
    monkeypatch.setattr(known_numbers, "values_of_nodes", noted)
    kernel = sa.compile(sa.grad(largest), x)
    assert not without_value
    assert kernel(x) == pytest.approx(sa.grad(largest)(x), rel=1e-14)
