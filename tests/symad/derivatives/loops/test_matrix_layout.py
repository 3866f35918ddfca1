"""Copies of packed numbers to their places."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, RolledProgram
from codegen.pricing.price_table import NANOSECONDS
from symad.derivatives.loops.matrix_layout import copies, cost


@pytest.mark.parametrize(
    ("target", "regions"),
    [
        (np.array([6, 2, 9, 0, 11, 4]), 1),
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
    assert cost(order, turned + 5) == 20 * NANOSECONDS["table"]
    assert cost(order, turned + (turned > 9)) == 20 * (NANOSECONDS["table"] + NANOSECONDS["table store"])
