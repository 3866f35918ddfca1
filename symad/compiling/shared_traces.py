"""Share traces and rolled programs among everything that is compiled of one function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from codegen.bound import bound

Made = TypeVar("Made")


class SharedTraces:
    """Traces and programs by the id of their origin and their form."""

    def __init__(self) -> None:
        self._traces: dict[Hashable, tuple[object, object]] = {}

    def once(self, origin: object, form: Hashable, make: Callable[[], Made]) -> Made:
        """Return the result of `make` for an origin in a form, made once; the origin stays alive with its id.

        >>> traces = SharedTraces()
        >>> origin = [1]
        >>> traces.once(origin, "copy", origin.copy) is traces.once(origin, "copy", origin.copy)
        True
        """
        key = id(origin), form
        if key not in self._traces:
            self._traces[key] = make(), origin
        shared: Made = self._traces[key][0]  # type: ignore[assignment]
        return shared


_OPENED: ContextVar[SharedTraces | None] = ContextVar("symad_shared_traces", default=None)


def traces() -> SharedTraces:
    """Return those that are shared here, or new ones."""
    return _OPENED.get() or SharedTraces()


@contextmanager
def shared_traces() -> Iterator[None]:
    """Share one trace of each function among all compilations inside, for the same arguments and options.

    Matrices have a trace of their own, with whole products of matrices.

    >>> import numpy as np
    >>> from symad.compiling.planning import plan
    >>> from symad.transforms.first_order import grad, hessian
    >>> traced = []
    >>> f = lambda x: traced.append(x.shape) or np.sum(x**3)
    >>> with shared_traces():
    ...     found = [plan(each, np.ones(1000), freeze=True) for each in (f, grad(f), hessian(f, sparse=True))]
    >>> len(traced), [each.name for each in found]
    (2, ['<lambda>', 'gradient_of_<lambda>', 'Hessian_of_<lambda>'])
    """
    with bound(_OPENED, SharedTraces()):
        yield
