"""Complex arrays as pairs of real traced arrays, as in Fourier transforms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from symad.errors import TraceError
from symad.tracing.calling.recorded_errors import innermost_watch
from symad.tracing.calling.user_place import is_numpy, is_ours, is_scipy, stores_item, user_place
from symad.tracing.numpy.reduce import is_traced
from symad.tracing.numpy.registry import FUNCTIONS
from symad.tracing.values.array import wrap
from symad.tracing.values.layouts import in_order_of
from symad.tracing.values.traced import NumberError, TracedComplex, numpy_name, refuse_number, store_error

Parts = tuple[Any, Any]  # real and imaginary ones; None for the imaginary part of real numbers
COMPLEX_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}  # of NumPy, on complex arrays
_MOVING: tuple[Any, ...] = (
    np.reshape, np.ravel, np.transpose, np.moveaxis, np.swapaxes, np.squeeze, np.expand_dims, np.flip, np.roll,
    np.fft.fftshift, np.fft.ifftshift, np.sum, np.mean, np.diff, np.cumsum, np.repeat, np.tile, np.take,
    np.broadcast_to, np.rot90, np.fliplr, np.flipud, np.trace, np.diagonal, np.tril, np.triu, np.trapezoid,
)  # fmt: skip
_SEPARATE: tuple[Any, ...] = (np.atleast_1d, np.atleast_2d, np.atleast_3d)
_METHODS = (
    "copy", "cumsum", "diagonal", "dot", "mean", "prod", "ravel", "repeat", "squeeze", "sum", "swapaxes", "take",
    "trace", "transpose",
)  # fmt: skip
_JOINING: tuple[Any, ...] = (np.concatenate, np.stack, np.hstack, np.vstack, np.column_stack, np.dstack)


class ComplexArray(TracedComplex, NDArrayOperatorsMixin):
    """Complex numbers of which at least one part is traced; `real` and `imag` are arrays of one shape.

    Arithmetic, absolute values, conjugates, views and what `np.fft` has are here, elementary functions in
    `complex_functions`.
    A result of a function is real: anything else is refused by name.
    """

    __slots__ = ("imag", "real")

    real: Any
    imag: Any
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return np.shape(self.real)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.size(self.real)))
    dtype = np.dtype(np.complex128)

    @property
    def T(self) -> ComplexArray:  # noqa: N802 (NumPy's name)
        """The transposed array."""
        return ComplexArray(np.transpose(self.real), np.transpose(self.imag))

    def __len__(self) -> int:
        return len(self.real)

    def __getitem__(self, key: Any) -> ComplexArray:
        return self._with(lambda part: part[key])

    def conj(self) -> ComplexArray:
        """Return the conjugate numbers."""
        return made(self.real, -self.imag)

    conjugate = conj

    def reshape(self, *shape: Any) -> ComplexArray:
        """Return the array in another shape."""
        return self._with(lambda part: part.reshape(*shape))

    def _with(self, function: Callable[[Any], Any]) -> ComplexArray:
        """Return what a function has of both parts: views of them as they are, else what is made anew."""
        real, imaginary = function(self.real), function(self.imag)
        held = [_elements(part) for part in (real, self.real)]
        views = all(isinstance(part, np.ndarray) for part in held) and np.may_share_memory(held[0], held[1])
        return ComplexArray(real, imaginary) if views else made(real, imaginary)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return complex_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        if function in COMPLEX_FUNCTIONS:
            value = COMPLEX_FUNCTIONS[function](*args, **keywords)
            return made(value.real, value.imag) if isinstance(value, ComplexArray) else value
        if function in _SEPARATE and len(args) > 1:
            return tuple(map(function, args))
        if function in (*_MOVING, *_SEPARATE) and isinstance(args[0], ComplexArray):
            return args[0]._with(lambda part: function(part, *args[1:], **keywords))
        if function in _JOINING:
            sides = list(zip(*map(parts, args[0]), strict=True))
            return made(*(function(list(side), *args[1:], **keywords) for side in sides))
        refuse(numpy_name(function))

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            return partial(getattr(np, name), self)
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            refuse(f".{name}")
        raise AttributeError(name)

    def __bool__(self) -> bool:
        refuse("a truth value")

    def __complex__(self) -> complex:
        if stores_item():
            raise store_error()
        refuse_number("a complex number")

    def __setitem__(self, key: Any, value: Any) -> None:
        real, imaginary = parts(value)
        self.real[key] = real
        self.imag[key] = 0.0 if imaginary is None else imaginary

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise NumberError(**_refusal("an ordinary array"))


def made(real: Any, imaginary: Any, model: Any = None) -> ComplexArray:
    """Return complex numbers that NumPy makes anew, in the order of a model or of their own.

    Each part has gaps in memory, where the other one's elements are: so what `ravel` makes of it is no view.
    """
    return ComplexArray(*(_with_gaps(part, model) for part in (real, imaginary)))


def _with_gaps(part: Any, model: Any) -> Any:
    elements = _elements(part)
    if not isinstance(elements, np.ndarray) or not elements.ndim:
        return part
    like = elements if model is None else np.asarray(_elements(model))
    apart: Any = np.empty_like(like, dtype=np.complex128, shape=elements.shape).real
    apart = apart.view(np.int64) if is_traced(part) else apart
    apart[...] = elements
    return wrap(apart, part.scope) if is_traced(part) else apart


def in_its_order(array: Any, model: Any) -> Any:
    """Return a real array, in memory in the order of a model."""
    if not is_traced(array) or not np.ndim(array):
        return array
    return wrap(in_order_of(array.nodes, np.asarray(_elements(model))), array.scope)


def _elements(part: Any) -> Any:
    """Return the array of nodes, or of numbers, that a part is."""
    return part.nodes if is_traced(part) and np.ndim(part) else part


def complex_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return a ufunc of numbers of which some are complex; into `out=` where that is a complex array."""
    function = COMPLEX_UFUNCS.get(ufunc.__name__)
    (target,) = keywords["out"] if set(keywords) == {"out"} else (None,)
    if function is None or method != "__call__" or (keywords and not isinstance(target, ComplexArray)):
        refuse(f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__"))
    result = function(*map(parts, inputs))
    result = made(result.real, result.imag) if isinstance(result, ComplexArray) else result
    if target is None or not target.ndim:  # a number has no place of its own
        return result
    target[...] = result
    return target


def is_complex(value: Any) -> bool:
    """Whether a value is an ordinary complex number, or an array of them."""
    kinds = complex | np.complexfloating
    return isinstance(value, kinds) or (isinstance(value, np.ndarray) and value.dtype.kind == "c")


def parts(value: Any) -> Parts:
    """Return the real and imaginary parts of a value."""
    if isinstance(value, TracedComplex):
        return value.real, value.imag  # type: ignore[attr-defined]
    if is_complex(value):
        return value.real, value.imag
    return value, None


def check_beside_complex(inputs: Sequence[Any]) -> None:
    """Raise TraceError where NumPy's loop over objects may have brought a traced number and a complex one together."""
    watch, frame = innermost_watch(), sys._getframe(1)
    while is_ours(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    file = frame.f_code.co_filename
    in_loop = (watch is not None and watch.makes_objects) or is_numpy(file) or is_scipy(file)
    if in_loop and any(is_traced(value) and not np.ndim(value) for value in inputs):
        raise TraceError(
            "a complex number met a traced value in an object array",
            where=user_place(),
            why="NumPy has no complex arrays of objects: their .real and .imag are not those of the elements",
            do="write z @ x for z.dot(x), and make arrays with np.stack([...])",
        )


def refuse(name: str) -> NoReturn:
    """Refuse what is done to a complex array."""
    raise TraceError(**_refusal(name))


def _refusal(name: str) -> dict[str, str]:
    return {
        "what": f"{name} of a complex array of traced values",
        "where": user_place(),
        "why": "it has arithmetic, elementary functions, absolute values, conjugates and transforms",
        "do": "write it with .real and .imag",
    }


def _both(function: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    """Return a sum or difference of parts, of which one may be missing: it is 0, beside which -0.0 is 0.0 in a sum."""
    return function(0.0 if first is None else first, 0.0 if second is None else second)


def _added(function: Callable[[Any, Any], Any]) -> Callable[..., ComplexArray]:
    def handler(first: Any, second: Any) -> ComplexArray:
        real = function(first[0], second[0])
        imaginary = _both(function, first[1], second[1])
        return ComplexArray(real, np.broadcast_to(imaginary, np.shape(real)))

    return handler


def multiplied(first: Parts, second: Parts, product: Callable[[Any, Any], Any] = np.multiply) -> ComplexArray:
    """Return the product of two pairs of parts, of which at most one imaginary part is missing."""
    (a, b), (c, d) = first, second
    if d is None:
        return ComplexArray(product(a, c), product(b, c))
    if b is None:
        return ComplexArray(product(a, c), product(a, d))
    return ComplexArray(product(a, c) - product(b, d), product(a, d) + product(b, c))


def _divided(first: Any, second: Any) -> ComplexArray:
    c, d = second
    if d is None:
        return ComplexArray(first[0] / c, first[1] / c)
    square = c * c + d * d
    return multiplied(first, (c / square, -d / square))


COMPLEX_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _added(np.add),
    "subtract": _added(np.subtract),
    "multiply": multiplied,
    "divide": _divided,
    "negative": lambda u: ComplexArray(-u[0], -u[1]),
    "positive": lambda u: ComplexArray(*u),
    "conjugate": lambda u: ComplexArray(u[0], -u[1]),
    "square": lambda u: multiplied(u, u),
    "absolute": lambda u: np.hypot(*u),
}
COMPLEX_FUNCTIONS[np.real] = lambda val: val.real
COMPLEX_FUNCTIONS[np.imag] = lambda val: val.imag
COMPLEX_FUNCTIONS[np.angle] = lambda z, deg=False: np.arctan2(z.imag, z.real) * (180 / np.pi if deg else 1.0)
for _name in ("shape", "ndim", "size"):
    COMPLEX_FUNCTIONS[getattr(np, _name)] = lambda a, name=_name: getattr(a, name)
COMPLEX_FUNCTIONS[np.iscomplexobj] = lambda x: True


def transforms(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the traced form of a function of `np.fft`, for real and complex arrays."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function] = COMPLEX_FUNCTIONS[function] = handler
        return handler

    return register
