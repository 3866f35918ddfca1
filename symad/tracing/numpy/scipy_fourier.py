"""`scipy.fft` and the convolutions of `scipy.signal` on traced arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from symad.tracing.numpy.complex_arrays import COMPLEX_FUNCTIONS, in_its_order, made, parts
from symad.tracing.numpy.curves import kept_of_convolution
from symad.tracing.numpy.fourier import radices, resized, transform
from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import arguments_of, scipy_form
from symad.tracing.values.traced import TracedComplex, refuse_function

_TRANSFORMS = (
    "fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn",
    "hfft", "ihfft",
)  # fmt: skip
_DIRECT = 256  # products in a convolution of vectors that are added up as they are


class Complex:
    """The form of a function of `scipy.fft` that takes complex arrays too, by that of `np.fft`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the transform; how it is carried out is nobody's business."""
        given = arguments_of(f"scipy.fft.{self.name}", args, keywords)
        options = {name: given[name] for name in ("n", "s", "axis", "axes", "norm") if name in given}
        return in_rows(COMPLEX_FUNCTIONS[getattr(np.fft, self.name)](given["x"], **options))


def in_rows(array: Any) -> Any:
    """Return a result in C order, which SciPy's are whatever the order of its operands."""
    rows = np.empty(np.shape(array))
    return made(*parts(array), rows) if isinstance(array, TracedComplex) else in_its_order(array, rows)


def takes_complex(form: Callable[..., Any], values: Sequence[Any]) -> bool:
    """Return whether a form takes complex arrays, and gets one."""
    return isinstance(form, Complex) and any(isinstance(value, TracedComplex) for value in values)


for _name in _TRANSFORMS:
    stands_in_for(f"scipy.fft.{_name}")(Complex(_name))


def _real_transform(name: str, transform_of: Callable[[Any, int, bool], Any], *, back: bool) -> None:
    @scipy_form(f"scipy.fft.{name}")
    def handler(x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        if type not in (1, 2, 3) or norm not in (None, "backward", "ortho", "forward"):
            refuse_function(f"scipy.fft.{name}", "traced are types 1, 2 and 3", "use another")
        x = traced(x)
        axis = normalize_axis_index(axis, x.ndim)
        moved = np.moveaxis(x, axis, 0)
        moved = moved if n is None else resized(moved, n)
        kind, scaled = {1: 1, 2: 3, 3: 2}[type] if back else type, norm == "ortho"
        if scaled and type == 1:
            refuse_function(f"scipy.fft.{name} of type 1", 'norm="ortho" is not traced there', "scale it yourself")
        transformed = transform_of(moved, kind, scaled)
        if not scaled and (norm or "backward") == ("backward" if back else "forward"):
            length = len(moved) + (0 if type != 1 else -1 if "c" in name else 1)
            transformed = transformed / (2 * length)
        return in_rows(np.moveaxis(transformed, 0, axis))

    @scipy_form(f"scipy.fft.{name}n")
    def in_turn(x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        x = traced(x)
        sizes = None if s is None else np.atleast_1d(s)
        if axes is None:
            axes = range(x.ndim - (x.ndim if sizes is None else len(sizes)), x.ndim)
        axes = np.atleast_1d(axes)
        if len({normalize_axis_index(axis, x.ndim) for axis in axes}) < len(axes):
            raise ValueError("all axes must be unique")
        for axis, size in zip(axes, [None] * len(axes) if sizes is None else sizes, strict=True):
            x = handler(x, type, size, axis, norm)
        return in_rows(x)


def _column(values: Any, like: Any) -> Any:
    return np.reshape(values, (-1,) + (1,) * (np.ndim(like) - 1))


def _cosines(x: Any, kind: int, scaled: bool) -> Any:
    """Return cosine transforms along the first axis: as the transform of what goes on evenly."""
    n = len(x)
    if kind == 1:
        if n < 2:
            raise ValueError("DCT-I is not defined for size < 2")
        return transform((np.concatenate([x, x[1:-1][::-1]]), None))[0][:n]
    angles = _column(np.pi * np.arange(n) / (2 * n), x)
    weights = np.full(n, (2 * n) ** -0.5 if scaled else 1.0)
    weights[0] = n**-0.5 / 2 if scaled and kind == 2 else n**-0.5 if scaled else 1.0
    if kind == 2:
        real, imaginary = transform((np.concatenate([x, x[::-1]]), None))
        return (real[:n] * np.cos(angles) + imaginary[:n] * np.sin(angles)) * _column(weights, x)
    weights[1:] *= 2
    given = x * _column(weights, x)
    wide = [np.concatenate([given * part, np.zeros(np.shape(x))]) for part in (np.cos(angles), np.sin(angles))]
    return transform((wide[0], wide[1]), back=True)[0][:n]


def _sines(x: Any, kind: int, scaled: bool) -> Any:
    """Return sine transforms, by those of cosines."""
    n = len(x)
    if kind == 1:
        zero = np.zeros((1, *np.shape(x)[1:]))
        return -transform((np.concatenate([zero, x, zero, -x[::-1]]), None))[1][1 : n + 1]
    signs = _column(1.0 - 2.0 * (np.arange(n) % 2), x)
    return _cosines(x * signs, 2, scaled)[::-1] if kind == 2 else _cosines(x[::-1], 3, scaled) * signs


for _name, _one in (("dct", _cosines), ("dst", _sines)):
    _real_transform(_name, _one, back=False)
    _real_transform(f"i{_name}", _one, back=True)


def _convolved(in1: Any, in2: Any, mode: str) -> Any:
    """Return the convolution of two arrays along all their axes, by transforms; real ones."""
    a, b = together(in1, in2)
    if a.ndim != b.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if mode not in ("full", "same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    if not a.size or not b.size:
        return np.zeros(0)
    shape = [n + m - 1 for n, m in zip(a.shape, b.shape, strict=True)]
    wide = [next(k for k in range(n, 2 * n + 1) if n == 1 or radices(k)) for n in shape]
    axes = tuple(range(a.ndim))
    product = np.fft.rfftn(a, wide, axes) * np.fft.rfftn(b, wide, axes)
    full = COMPLEX_FUNCTIONS[np.fft.irfftn](product, wide, axes)[tuple(map(slice, shape))]
    return in_rows(full[tuple(kept_of_convolution(n, m, mode) for n, m in _sides(a.shape, b.shape, mode))])


def _sides(first: tuple[int, ...], second: tuple[int, ...], mode: str) -> list[tuple[int, int]]:
    pairs = list(zip(first, second, strict=True))
    if mode == "valid" and not all(n >= m for n, m in pairs):
        if not all(m >= n for n, m in pairs):
            raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
        return [(m, n) for n, m in pairs]
    return pairs


@stands_in_for("scipy.signal.fftconvolve", "scipy.signal.oaconvolve")
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays along all axes."""
    if axes is not None:
        refuse_function("scipy.signal.fftconvolve with axes=", "it is traced along all axes", "leave it out")
    return _convolved(in1, in2, mode)


@stands_in_for("scipy.signal.convolve")
def convolve(in1: Any, in2: Any, mode: Any = "full", method: str = "auto") -> Any:
    """The same; by transforms whatever the method, but for few elements of vectors."""
    vectors = np.ndim(in1) == np.ndim(in2) == 1
    turned = mode == "same" and np.size(in2) > np.size(in1)  # which NumPy has of the other one
    if vectors and not turned and 0 < np.size(in2) * np.size(in1) <= _DIRECT:
        return np.convolve(in1, in2, mode)
    return _convolved(in1, in2, mode)


@stands_in_for("scipy.signal.correlate")
def correlate(in1: Any, in2: Any, mode: Any = "full", method: str = "auto") -> Any:
    """The convolution with the second array turned round."""
    if mode == "valid" and np.size(in2) > np.size(in1):
        return np.flip(convolve(np.flip(in1), in2, mode))
    return convolve(in1, np.flip(in2), mode)
