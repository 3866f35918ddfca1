"""Lane counts and number types of emitted code. A register holds one value, or several points side by side."""

from __future__ import annotations

import struct
from typing import Any, Literal, NamedTuple

import numpy as np


class Lanes(NamedTuple):
    """`width` lanes of the IR type `scalar`; with one lane, values are plain scalars.

    In memory the lanes of a value lie side by side: value k of an array stands at position `k * width`.

    >>> Lanes().type, Lanes(8).type, Lanes(8).truth, Lanes(4, "float").word, Lanes(4, "float").suffix
    ('double', '<8 x double>', '<8 x i1>', '<4 x i32>', 'v4f32')
    """

    width: int = 1
    scalar: str = "double"

    @property
    def type(self) -> str:
        """IR type of a number."""
        return self._of(self.scalar)

    @property
    def truth(self) -> str:
        """IR type of a truth value."""
        return self._of("i1")

    @property
    def word(self) -> str:
        """IR type of the bits of a number."""
        return self._of(f"i{8 * self.size}")

    @property
    def suffix(self) -> str:
        """How LLVM's intrinsics name the type."""
        bits = {"double": "f64", "float": "f32"}[self.scalar]
        return bits if self.width == 1 else f"v{self.width}{bits}"

    @property
    def size(self) -> int:
        """Bytes of one lane."""
        return {"double": 8, "float": 4}[self.scalar]

    @property
    def attributes(self) -> str:
        """Attributes of functions with values of this type: whole registers of 512 bits where the lanes fill them."""
        bits = 8 * self.size * self.width
        return f' "min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}"' if bits >= 512 else ""

    def constant(self, packed: bytes) -> str:
        """Return the IR of a constant, given as big-endian float64; a float32 lane rounds it once."""
        if self.scalar == "float":
            (value,) = struct.unpack(">d", packed)
            packed = struct.pack(">d", as_float32(value))
        return self.splat(f"0x{packed.hex().upper()}")

    def splat(self, text: str, scalar: str | None = None) -> str:
        """Return the IR of a constant that is the same in every lane."""
        return text if self.width == 1 else f"splat ({scalar or self.scalar} {text})"

    def _of(self, scalar: str) -> str:
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"


class LaneLayout(NamedTuple):
    """Where an array's elements stand: element k at `k * step`, its lanes side by side, or one number for all lanes.

    `Layout(lanes.width)` is the layout of blocks of points, `Layout(1, uniform=True)` of values that all lanes share.
    """

    step: int
    uniform: bool = False


def as_float32(value: float) -> float:
    """Round to float32, to infinity where it is too large."""
    try:
        rounded: float = struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


SCALAR = Lanes()


Dtype = Literal["float64", "float32", "complex128"]


class NumberType(NamedTuple):
    """A number in memory: `parts` machine numbers of IR type `scalar`; arrays of the dtype kinds can be converted."""

    name: Dtype
    dtype: np.dtype[Any]
    scalar: str
    parts: int
    kinds: str

    def lanes(self, width: int = 1) -> Lanes:
        """Lanes of this type's machine numbers."""
        return Lanes(width, self.scalar)


FLOAT64 = NumberType("float64", np.dtype(np.float64), "double", 1, "biuf")
FLOAT32 = NumberType("float32", np.dtype(np.float32), "float", 1, "biuf")
COMPLEX128 = NumberType("complex128", np.dtype(np.complex128), "double", 2, "biufc")
NUMBER_TYPES: dict[str, NumberType] = {found.name: found for found in (FLOAT64, FLOAT32, COMPLEX128)}
