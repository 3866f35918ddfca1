"""The instruction that Python executes at the user's line."""

from __future__ import annotations

import dis
from types import FrameType

_OPERATOR = dis.opmap["BINARY_OP"]
_IN_PLACE = frozenset(k for k, (name, _) in enumerate(dis._nb_ops) if name.startswith("NB_INPLACE"))  # type: ignore[attr-defined]


def is_operator(frame: FrameType) -> bool:
    """Whether a function is at an operator of two operands."""
    return frame.f_code.co_code[frame.f_lasti] == _OPERATOR


def is_in_place(frame: FrameType) -> bool:
    """Whether a function is at an operator in place, such as `a *= b`."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == _OPERATOR and code[at + 1] in _IN_PLACE
