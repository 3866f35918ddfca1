"""Arrays of other libraries that compute by rules of their own: labels, units, lazy evaluation, masks.

Converted to plain numbers they lose what they carry, so who takes numbers refuses them, and operators are left to them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

_OWN = ("__array_ufunc__", "__array_finalize__", "__array_wrap__", "__mul__")


def has_rules(kind: type[Any]) -> bool:
    """Whether a class computes with arrays by rules of its own; NumPy's own classes do not.

    >>> has_rules(float), has_rules(np.ndarray), has_rules(np.matrix), has_rules(type("Metres", (np.ndarray,), {}))
    (False, False, False, False)
    >>> has_rules(type("Metres", (np.ndarray,), {"__array_finalize__": lambda self, source: None}))
    True
    """
    if kind not in _known:
        _known[kind] = _has_rules(kind)
    return _known[kind]


_known: WeakKeyDictionary[type[Any], bool] = WeakKeyDictionary()


def _has_rules(kind: type[Any]) -> bool:
    derived = issubclass(kind, np.ndarray)
    owners = [next((base for base in kind.__mro__ if name in vars(base)), None) for name in _OWN[: 4 if derived else 1]]
    foreign = [owner for owner in owners if owner and owner.__module__.partition(".")[0] not in ("numpy", "symad")]
    return bool(foreign) and (derived or getattr(kind, "__array_ufunc__", None) is not None)


def ruled_part(value: Any) -> Any:
    """Return a value with rules of its own, or the first such part of a list; None where there is none."""
    if isinstance(value, list | tuple):
        return next((part for item in value if (part := ruled_part(item)) is not None), None)
    return value if has_rules(type(value)) else None


def way_out(kind: type) -> str:
    """Return what to write in place of an array of a class with rules of its own."""
    package = kind.__module__.partition(".")[0]
    ways = {
        "pandas": "give its numbers, s.to_numpy()", "xarray": "give its numbers, a.to_numpy()",
        "pint": "give q.m_as(unit)", "astropy": "give q.to_value(unit)", "dask": "give a.compute(), or kernel.gufunc()",
    }  # fmt: skip
    return ways.get(package, "give plain numbers: np.asarray(value) where nothing is lost in it")
