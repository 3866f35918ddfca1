"""NumPy functions that are refused by name, each with its reason; no other module needs to know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.registry import implements
from symad.tracing.traced import numpy_name, refuse_function

_DECOMPOSITION = "a decomposition has no traced form yet"
_COMPLEX = "it gives complex numbers, and only real functions are differentiated"
_VALUES = "the shape of its result depends on the values"
_COUNTING = "its result is a count or a set, which has no derivative"

REASONS: dict[Callable[..., Any], str] = {
    np.linalg.eig: _DECOMPOSITION,
    np.linalg.eigh: _DECOMPOSITION,
    np.linalg.eigvals: _DECOMPOSITION,
    np.linalg.eigvalsh: _DECOMPOSITION,
    np.linalg.svd: _DECOMPOSITION,
    np.linalg.svdvals: _DECOMPOSITION,
    np.linalg.matrix_rank: _COUNTING,
    np.fft.fft: _COMPLEX,
    np.fft.ifft: _COMPLEX,
    np.fft.rfft: _COMPLEX,
    np.fft.irfft: _COMPLEX,
    np.fft.fft2: _COMPLEX,
    np.fft.ifft2: _COMPLEX,
    np.fft.fftn: _COMPLEX,
    np.fft.ifftn: _COMPLEX,
    np.angle: _COMPLEX,
    np.sort_complex: _COMPLEX,
    np.unique: _VALUES,
    np.unique_values: _VALUES,
    np.intersect1d: _VALUES,
    np.union1d: _VALUES,
    np.setdiff1d: _VALUES,
    np.histogram: _COUNTING,
    np.histogram2d: _COUNTING,
    np.histogramdd: _COUNTING,
    np.roots: _DECOMPOSITION,
    np.save: "a traced value belongs to a running trace",
    np.savez: "a traced value belongs to a running trace",
    np.savetxt: "a traced value belongs to a running trace",
    np.packbits: _COUNTING,
}


def _refusing(name: str, why: str) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        refuse_function(name, why)

    return handler


for _function, _why in REASONS.items():
    implements(_function)(_refusing(numpy_name(_function), _why))
