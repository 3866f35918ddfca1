"""An ordinary array whose elements at traced places are traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.values.array import plain_index, wrap
from symad.tracing.values.computed_places import decide_outside
from symad.tracing.values.known_numbers import SymbolicValueError
from symad.tracing.values.mask_selection import has_selection
from symad.tracing.values.node_arrays import constants
from symad.tracing.values.node_operands import holds_traced, scope_of
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import IndexNumberError, Traced


class Indexed(np.ndarray):
    """A view of an ordinary array that accepts a traced index without a value; otherwise it is NumPy's.

    In a second run it replaces an array that is indexed.
    """

    def __getitem__(self, key: Any) -> Any:
        if not (isinstance(key, Traced) or (isinstance(key, tuple | list) and holds_traced((key,)))):
            return super().__getitem__(key)
        if has_selection(key):
            scope = scope_of(key)
            return wrap(constants(scope.graph, self.view(np.ndarray)), scope)[key]
        try:
            plain = plain_index(key)
        except (SymbolicValueError, IndexNumberError) as error:
            discard_recorded_error(error)
            scope = scope_of(key)
            nodes = constants(scope.graph, self.view(np.ndarray))
            known = None if scope.gather is None else scope.gather(nodes, key)
            if known is not None:
                return wrap(known, scope)
            if isinstance(key, Scalar):
                decide_outside(scope, [np.array(key.node)], self.shape[:1])
            return wrap(nodes, scope)[key]
        return super().__getitem__(plain)


def is_table(value: Any) -> bool:
    """Whether a value is an ordinary array of numbers with an axis."""
    return type(value) is np.ndarray and value.ndim > 0 and value.dtype.kind in "biuf"
