"""A kernel as a generalized ufunc for dask and xarray, which send parts to processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from codegen.errors import ArgumentError
from codegen.machine.batches.batch import signature
from codegen.machine.calls.arguments import CallSignature, in_positions
from codegen.visible import visible

REVIVED = 16  # kernels that one process keeps of those that came to it


class Gufunc:
    """A kernel that takes arrays with leading axes, as a gufunc of NumPy does; `signature` has its axes.

    It pickles, and a process compiles it once for all parts of an array. `sizes` are the arguments that
    `dask.array.apply_gufunc` needs beside the signature.

    >>> import sympy as sp
    >>> from codegen import lambdify
    >>> x, y = sp.symbols("x y")
    >>> norm = lambdify([[x, y]], sp.sqrt(x**2 + y**2)).kernel.gufunc()
    >>> norm.signature, norm(np.array([[3.0, 4.0], [5.0, 12.0]])), norm([3, 4])
    ('(2)->()', array([ 5., 13.]), array(5.))
    """

    def __init__(self, kernel: Any, threads: int) -> None:
        if kernel.pack is not None or kernel.unpack is not None:
            raise ArgumentError(
                "a gufunc of a kernel that takes or returns containers", why="a gufunc takes arrays and returns arrays",
                do="compile a function of arrays",
            )  # fmt: skip
        self._kernel, self._threads = kernel, threads
        self.__name__: str = kernel.program.name

    __signature__ = CallSignature()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Evaluate at all points; ArgumentError for arrays that do not end in the declared shapes."""
        if keywords:
            args = in_positions(args, keywords, self.argument_names)
        results = self._kernel.batch(*args, threads=self._threads)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else np.asarray(results)

    @property
    def argument_names(self) -> list[str]:
        """The names of its arguments."""
        return [array.name for array in self._kernel.program.arguments]

    @property
    def signature(self) -> str:
        """Shapes of arguments and results in NumPy's notation: lengths stand for their own names."""
        program = self._kernel.program
        return signature(program.arguments, program.outputs)

    @property
    def sizes(self) -> dict[str, Any]:
        """The keywords `output_dtypes`, and `output_sizes` of axes that no argument has."""
        program = self._kernel.program
        dtype = self._kernel.options.number.dtype
        taken, result_axes = (set(re.findall(r"\d+", part)) for part in self.signature.split("->"))
        dtypes = [dtype] * len(program.outputs)
        return {
            "output_dtypes": dtypes if len(dtypes) > 1 else dtype,
            "output_sizes": {name: int(name) for name in sorted(result_axes - taken)},
        }

    def __repr__(self) -> str:
        return visible(f"<Gufunc {self.__name__} {self.signature}>")

    def __reduce__(self) -> tuple[Any, ...]:
        revive, (data, *_) = self._kernel.__reduce__()
        return revived, (revive, data, self._threads)


@lru_cache(maxsize=REVIVED)
def revived(revive: Callable[..., Any], data: bytes, threads: int) -> Gufunc:
    """Return a gufunc in another process, where it is compiled when it comes for the first time."""
    kernel: Gufunc = revive(data, None, None).gufunc(threads=threads)
    return kernel
