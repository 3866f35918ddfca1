"""Share traces and rolled programs among everything that is compiled of one function.

All ways to compile it, and all its transforms, start from one trace: as a function again, it copies nodes instead of
running the user's code. A transform of the replayed function sees the nodes, aliases included, in the order in which
the user's code made them, with the same source lines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Parameter, Signature
from typing import Any, TypeVar

import numpy as np

import symad.tracing.values.containers as containers
from codegen.bound import bound
from codegen.heads import Alias
from codegen.ir.program import reachable
from symad.derivatives.level import ONE_PATH
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.control.paths import Paths
from symad.tracing.trace import Trace
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_trees import wrap

Function = Callable[..., Any]
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


def can_be_replayed(traced: Trace) -> bool:
    """Whether the nodes of a trace say all about it: it has no rules of single nodes."""
    return not traced.graph.rules


def replayed(traced: Trace, name: str) -> Function:
    """Return a traced function as a function of traced values, under the names of its arguments.

    It has one path, in which the paths of the user's code are merged.

    >>> from symad.tracing.trace import trace
    >>> calls = []
    >>> square = trace(lambda x: (calls.append(1), x * x)[1], 1.0)
    >>> trace(replayed(square, "square"), 1.0).expr(), len(calls)
    (x**2, 1)
    """

    def function(*args: Any) -> Any:
        scope = innermost_scope()
        leaves, structure = containers.flatten(args)
        if scope is None or structure != traced.inputs.structure:
            raise ArgumentError("a replayed function, called with other arguments than it was traced with")
        inputs = np.concatenate([np.empty(0, dtype=np.int64), *(nodes_of(leaf, scope).ravel() for leaf in leaves)])
        copied = _copied(traced, scope.graph, inputs.tolist())
        if traced.raised is not None and isinstance(scope.paths, Paths):
            scope.paths.has_no_value((copied[traced.raised],), raises=traced.raises)
        return wrap(scope, traced.whole.refill([copied[node] for node in traced.whole.flat]))

    setattr(function, ONE_PATH, traced.raised is None)
    parameters = [Parameter(parameter, Parameter.POSITIONAL_OR_KEYWORD) for parameter in traced.names]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = name
    return function


def _copied(traced: Trace, graph: Graph, inputs: list[int]) -> dict[int, int]:
    """Return the nodes of a graph that stand for those that the results of a trace need, with the user's lines."""
    source = traced.graph
    copies = dict(zip(traced.inputs.flat, inputs, strict=True))
    heads, operands, row = source.heads, source.operands, graph.row
    nodes = reachable(source, traced.whole.flat if traced.raised is None else [*traced.whole.flat, traced.raised])
    for instruction, those in source.by_instruction(nodes):
        for node in graph.pairs_alone(heads, operands, those, copies, as_written=True):
            if node in copies:
                continue
            head, parts = heads[node], operands[node]
            if not parts:
                copies[node] = graph.leaf(source.atoms[node])
            elif head is Alias:
                copies[node] = graph.alias(copies[parts[0]])
            else:
                copies[node] = row(head, tuple([copies[part] for part in parts]))
        graph.place_at(instruction)
    return copies
