"""Arrays of rolled programs: which outputs are asked for, and which inputs are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.ir.region import Buffer, RolledProgram
from symad.derivatives.loops.draft import Draft


def select(program: RolledProgram, outputs: Sequence[int], constants: Mapping[int, Any]) -> RolledProgram:
    """Return a program with some of its outputs, in the order given, and numbers in place of some of its inputs.

    `constants` has the numbers of an input array by its place among the inputs. What only other outputs needed is left
    out.
    """
    draft = Draft(program)
    draft.steps = list(program.steps)
    for number, values in constants.items():
        flat = np.ravel(np.asarray(values, dtype=np.float64)).copy()
        draft.buffers[number] = Buffer("constant", len(flat), flat)
    inputs = [(array, number) for number, array in enumerate(program.inputs) if number not in constants]
    found = draft.finish(inputs, [(program.outputs[k], program.first_output + k) for k in outputs], "selection")
    return found if found.name == program.name else replace(found, name=program.name)
