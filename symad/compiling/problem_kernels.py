"""The kernels of a small problem, from one trace: objective, constraints, and the derivatives that solvers ask for.

Whether a problem is small is decided by prices (`planning.without_search`), before derivatives are traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.collector import fewer_collections
from codegen.machine.kernel_text import LISTING
from codegen.pricing.price_table import Way
from codegen.stages import compilation
from symad.compiling.native import carry_out
from symad.compiling.plan import CompilationPlan, PlanOptions
from symad.compiling.planning import Search, straight_lines, without_search
from symad.compiling.shared_traces import can_be_replayed, replayed
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.memory import telling
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.control.paths import MAX_PATHS
from symad.tracing.trace import Trace, trace_ours
from symad.tracing.values.node_trees import Tree
from symad.transforms.optimisation import value_gradient_hessian

Function = Callable[..., Any]

UNSEARCHED = "the problem is small, and a solver calls a kernel a few times: loops are not looked for"
OPTIONS = PlanOptions("auto", "auto", "all", MAX_PATHS, "float64")


@public_api
def problem_kernels(objective: Function, constraints: Function | None, examples: Sequence[Any]) -> list[Kernel] | None:
    """Return the kernels of the value, the gradient, the constraints, the Jacobian and the Hessian of the Lagrangian.

    The Hessian takes multipliers and sigma too, and stands behind the gradient without constraints. Matrices are
    sparse, the Hessian is a lower triangle. None where loops may cost less, and for functions with loops or own rules.

    >>> kernels = problem_kernels(lambda x: x[0] ** 2 * x[1], lambda x: x[:1] * x[1:], [np.ones(2)])
    >>> [kernel.declared.name for kernel in kernels][:3]
    ['<lambda>', 'gradient_of_<lambda>', '<lambda>']
    >>> kernels[-1](np.array([2.0, 3.0]), np.array([10.0]), 1.0)
    array([ 6., 14.])
    """
    functions = [objective] if constraints is None else [objective, constraints]
    with telling(), fewer_collections():
        searches: list[Search] = []
        for function in functions:
            searches.append(Search(function, tuple(examples), OPTIONS))
            if not _is_plain(searches[-1]):
                return None
        traces = [search.traced for search in searches]
        if not without_search(traces, 2 * len(traces) + 1):
            return None
        names: list[str] = list(traces[0].names)
        weights: list[Any] = []
        if constraints is not None:
            if not traces[1].outputs.size:
                return None
            weights = [np.ones(traces[1].outputs.size), 1.0]
            names += [name + "_" * (name in names) for name in ("multipliers", "sigma")]
        first, *second = [replayed(traced, name_of(objective)) for traced in traces]
        combined = value_gradient_hessian(first, second[0] if second else None, sparse="lower")
        whole = trace_ours(combined, [*examples, *weights], names, MAX_PATHS)
        for search in searches:  # else `compile` does
            search.tell_stale_values()
        operations = sum(traced.count_ops() for traced in traces)
        name = name_of(objective)
        limited = [] if constraints is None else [name_of(constraints), f"Jacobian_of_{name_of(constraints)}"]
        names = [name, f"gradient_of_{name}", *limited, f"Hessian_of_{name}"]
        return [_compiled(whole, number, name, operations) for number, name in enumerate(names)]


def _is_plain(search: Search) -> bool:
    """Whether the nodes say all about a function, and it has a value everywhere."""
    traced = search.traced
    plain = can_be_replayed(traced) and traced.raised is None and not traced.in_body
    return plain and not (search.recipes or search.written_down)


def _compiled(whole: Trace, number: int, name: str, operations: int) -> Kernel:
    """Return the kernel of a result, which takes the weights only if it is the last one."""
    results = containers.unflatten(whole.outputs.structure, whole.outputs.arrays)
    inputs = containers.unflatten(whole.inputs.structure, whole.inputs.arrays)
    count = len(inputs) - 2 * (len(results) == 5 and number < 4)
    parts = (containers.flatten(part) for part in (tuple(inputs[:count]), results[number]))
    given, result = (Tree(structure, leaves) for leaves, structure in parts)
    with compilation(name, LISTING):
        traced = Trace(whole.graph, whole.names[:count], given, result)
        straight = straight_lines(traced, name)
        refused: dict[Way, str] = {"rolled": UNSEARCHED}
        return carry_out(CompilationPlan(name, operations, (), (straight,), refused, "straight", UNSEARCHED))
