"""Copies of packed numbers to their places, in stretches or by tables."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, RolledProgram
from codegen.pricing.price_table import NANOSECONDS
from symad.derivatives.loops.matrix_layout import copies, cost


def band(*counts: int) -> np.ndarray:
    """The places of diagonals of a matrix in rows: each goes to every so many places, some are shorter."""
    ends = [np.arange(count) * len(counts) + k for k, count in enumerate(counts)]
    return np.concatenate(ends)


@pytest.mark.parametrize(
    ("target", "regions"),
    [
        (band(5, 5), 1),
        (band(6, 4), 2),  # the longer stretch is finished alone
        (band(7, 5, 2), 3),
        (np.concatenate([band(6, 4), 20 + band(3, 3, 3)]), 3),  # of two steps
        (np.array([6, 2, 9, 0, 11, 4]), 1),  # a table
        (np.arange(0), 0),
    ],
)
def test_every_number_goes_to_its_place(target: np.ndarray, regions: int) -> None:
    size = int(target.max(initial=0)) + 1
    steps = copies(0, np.arange(len(target)), 1, target)
    assert len(steps) == regions
    buffers = Buffer("input", len(target)), Buffer("output", size)
    program = RolledProgram((Input("x", (len(target),)),), (Output((size,), ()),), buffers, tuple(steps))
    numbers = 1.0 + np.arange(len(target))
    wanted = np.zeros(size)
    wanted[target] = numbers
    if len(target):
        np.testing.assert_array_equal(evaluate_rolled(program, [numbers])[0], wanted)


def test_a_table_of_all_places_is_cheaper_than_one_with_gaps() -> None:
    """Where every place of the target is filled, the copy goes in the order of the target, and only reads a table."""
    order, turned = np.arange(20), np.random.default_rng(1).permutation(20)
    assert cost(order, order) == 0.0
    assert cost(order, order + 1) == 20 * NANOSECONDS["stride store"]
    assert cost(order, turned + 5) == 20 * NANOSECONDS["table"]
    assert cost(order, turned + (turned > 9)) == 20 * (NANOSECONDS["table"] + NANOSECONDS["table store"])
