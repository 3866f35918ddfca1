"""Carries of a longer lag are several of lag 1, with the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.loops.optimise.contraction import single_lags
from symad.derivatives.loops.body_derivatives import body_program


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_each_carry_has_lag_one(lag: int) -> None:
    body = body_program(lambda a, before: (before * 0.5 + np.sin(a),), 2)
    carry = Carry(0, tuple(Gather(0, Affine(k, 0, 1)) for k in range(lag)))
    region = Region(body, 7, (Gather(0, Affine(lag, 1, 7)),), (Result(0, 1, Affine(0, 1, 7), "store"),), (carry,))
    buffers = Buffer("input", 7 + lag), Buffer("output", 7)
    program = RolledProgram((Input("x", (7 + lag,)),), (Output((7,), ()),), buffers, (region,))
    single = single_lags(region)
    assert [carry.lag for carry in single.carries] == [1] * lag
    x = np.sqrt(np.arange(1.0, 8.0 + lag))
    wanted = evaluate_rolled(program, [x])[0]
    np.testing.assert_array_equal(evaluate_rolled(replace(program, steps=(single,)), [x])[0], wanted)
