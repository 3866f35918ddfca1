"""NumPy functions that pick by a mask or leave elements out."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import delivered, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.select import known
from symad.tracing.numpy.shape import moving, write
from symad.tracing.values.array import Array, plain_index, wrap
from symad.tracing.values.mask_selection import Selection
from symad.tracing.values.node_operands import nodes_of, scope_of

_DELETE = moving(np.delete)  # where the places are known


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """The slices for which the condition holds."""
    if known(condition) is None:
        whole = np.ravel(traced(a)) if axis is None else traced(a)
        mask = traced(condition).astype(bool)
        before = (slice(None),) * (0 if axis is None else axis % whole.ndim)
        return delivered(whole[(*before, mask)] if before else whole[mask], out)
    scope = scope_of(condition, a, out)
    return delivered(wrap(np.compress(plain_index(condition), nodes_of(a, scope), axis), scope), out)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without what stands at some places, or where a mask holds."""
    parts = obj if isinstance(obj, tuple) and len(obj) == 1 else (obj,)
    obj = parts[0]
    if not isinstance(obj, Selection) and known(obj) is not None:
        return _DELETE(arr, obj, axis)
    whole = np.ravel(traced(arr)) if axis is None else np.moveaxis(traced(arr), axis, 0)
    kept = ~obj if not isinstance(obj, Selection) and obj.dtype == bool else _without(obj, len(whole))
    rest = whole[kept]
    return rest if axis is None else np.moveaxis(rest.settled(), 0, axis)


def _without(places: Any, length: int) -> Any:
    """Return the mask of all places but some."""
    own = np.arange(length)
    if isinstance(places, Selection):
        here = np.equal(own[:, None], np.ravel(places.full)) & np.ravel(places.mask)
    else:
        flat = np.ravel(places)
        here = np.equal(own[:, None], np.where(flat < 0, flat + length, flat))
    return ~np.any(here, axis=1)


def _is_choice(target: Any, mask: Any, values: Any) -> bool:
    """Whether one value is written wherever a traced mask holds: a choice, which asks for no values."""
    return isinstance(target, Array) and isinstance(mask, Array) and np.size(values) == 1


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the first values where the mask holds, one after the other."""
    if _is_choice(arr, mask, vals):
        arr[mask] = np.ravel(traced(vals))[0]
    elif known(mask) is None:
        flat = np.ravel(mask)
        places = np.floor(np.mod(np.cumsum(np.where(flat, 1, 0)) - 1, np.size(vals)))
        arr[...] = np.where(mask, np.reshape(np.take(traced(vals), places), np.shape(arr)), arr)
    else:
        write(arr, vals, lambda nodes, new: np.place(nodes, plain_index(mask), new.ravel()))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the values at the same flat positions where the mask holds."""
    if _is_choice(a, mask, values):
        a[mask] = np.ravel(traced(values))[0]
    elif known(mask) is None:
        a[...] = np.where(mask, np.resize(traced(values), np.shape(a)), a)
    else:
        write(a, values, lambda nodes, new: np.putmask(nodes, plain_index(mask), new))
