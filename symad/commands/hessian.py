"""`symad hessian`: one function through the whole pipeline, every stage counted, the result checked."""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel
from symad.checking.precision import Verification, compare_exact, exact_values, flat_floats
from symad.derivatives.sparse import Triangle
from symad.errors import ArgumentError
from symad.native import compile_trace
from symad.teaching.spy import spy
from symad.tracing.trace import Trace, trace
from symad.transforms import HessianMode, hessian

DIGITS = 50
OTHER_ROUTE: dict[str, HessianMode] = {"fwd-rev": "edge"}  # the check takes another mode than the kernel


@dataclass
class Study:
    """What `symad hessian` found out about a function: stages, kernel, pattern, check."""

    name: str
    traced: Trace
    derivative: Trace
    kernel: Kernel
    rows: Any
    columns: Any
    matrix: Any
    verification: Verification
    call_seconds: float
    other: str
    stages: list[tuple[str, str, str, str]] = field(default_factory=list)


def study(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    *,
    name: str,
    mode: HessianMode = "auto",
    tier: Any = "default",
    progress: Callable[[str], None] = lambda stage: None,
) -> Study:
    """Trace, differentiate, compile, time and check the Hessian of a scalar function in its first argument."""
    stages: list[tuple[str, str, str, str]] = []

    def timed(stage: str, action: Callable[[], Any]) -> Any:
        progress(stage)
        start = perf_counter()
        found = action()
        stages.append((stage, "", "", f"{perf_counter() - start:.3f}"))
        return found

    sparse: Triangle | bool = "lower" if mode in ("auto", "edge", "dyadic") else False
    transformed = hessian(function, mode=mode, sparse=sparse)
    traced = timed("trace", lambda: trace(function, *arguments))
    _describe(stages, len(traced.graph), traced.count_ops())
    derived = timed("trace + differentiate", lambda: trace(transformed, *arguments))
    _describe(stages, len(derived.graph), derived.count_ops())
    kernel: Kernel = timed("lower + compile", lambda: compile_trace(derived, tier=tier, name=name))
    packed = kernel(*arguments)
    size = len(flat_floats(arguments[:1]))
    rows, columns = kernel.sparsity or np.nonzero(np.tril(np.ones((size, size))))
    values = np.asarray(packed) if kernel.sparsity else np.asarray(packed).reshape(size, size)[rows, columns]
    _check_finite(values, rows, columns)
    other = OTHER_ROUTE.get(mode, "fwd-rev")
    exact = timed(
        f"check: {other} in {DIGITS} digits",
        lambda: exact_values(trace(hessian(function, mode=other), *arguments), arguments, DIGITS),
    )
    verification = compare_exact(
        values.tolist(), [exact[i * size + j] for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
    )
    found = Study(
        name, traced, derived, kernel, rows, columns, _full(values, rows, columns, size), verification,
        _time_call(kernel, arguments), other, stages,
    )  # fmt: skip
    _check_pattern(found, exact)
    return found


def report(found: Study) -> str:
    """Return the study as text: stage table, pattern, check."""
    stats = found.kernel.stats
    lines = [f"Hessian of {found.name}, {found.matrix.shape[0]} variables", ""]
    lines += _table(("stage", "nodes", "operations", "seconds"), found.stages)
    lines += [
        "",
        f"operations before CSE  {stats.operations_before:.6g} (every shared expression written out)",
        f"operations after CSE   {stats.operations_after}",
        f"machine operations     {stats.total} ({stats.fused} multiplications go into fused multiply-adds)",
        f"non-zeros              {len(found.rows)} in the lower triangle, of {_lower(found.matrix.shape[0])}",
        f"time per call          {found.call_seconds * 1e6:.3g} us",
        "",
    ]
    rows, columns = np.concatenate([found.rows, found.columns]), np.concatenate([found.columns, found.rows])
    lines += ["sparsity pattern:", spy(rows, columns, found.matrix.shape), ""]
    lines += [f"check against {found.other} evaluated in {DIGITS} digits: {found.verification}"]
    return "\n".join(lines)


def emitted(found: Study, what: str) -> str:
    """Return LLVM IR, assembly, the let form, or its LaTeX."""
    return _EMITTERS[what](found)


def values(found: Study, sparse: bool) -> str:
    """Return the Hessian's numbers as text: the matrix, or one line `row column value` for each stored entry."""
    if not sparse:
        return "\n".join(" ".join(repr(float(value)) for value in row) for row in found.matrix) + "\n"
    places = zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    return "".join(f"{i} {j} {float(found.matrix[i, j])!r}\n" for i, j in places)


def _let_lines(found: Study) -> list[tuple[sp.Expr, sp.Expr]]:
    replacements, reduced = found.derivative.let()
    size = found.matrix.shape[0]
    pattern = zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    places = pattern if len(reduced) == len(found.rows) else np.ndindex(size, size)
    entries = [(sp.Symbol(f"H[{i},{j}]"), value) for (i, j), value in zip(places, reduced, strict=True)]
    return [*replacements, *entries]


def _let_text(found: Study) -> str:
    return "\n".join(f"{name} = {value}" for name, value in _let_lines(found)) + "\n"


def _let_latex(found: Study) -> str:
    body = [
        sp.latex(name).replace("H[", "H_{").replace("]", "}") + " &= " + sp.latex(value)
        for name, value in _let_lines(found)
    ]
    return "\\begin{align*}\n" + " \\\\\n".join(body) + "\n\\end{align*}\n"


_EMITTERS: dict[str, Callable[[Study], str]] = {
    "llvm": lambda found: found.kernel.llvm,
    "asm": lambda found: found.kernel.assembly,
    "let": _let_text,
    "latex": _let_latex,
}


def _describe(stages: list[tuple[str, str, str, str]], nodes: int, operations: int) -> None:
    stage, _, _, seconds = stages[-1]
    stages[-1] = (stage, str(nodes), str(operations), seconds)


def _table(header: tuple[str, ...], rows: list[tuple[str, str, str, str]]) -> list[str]:
    lines = [header, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return [
        "  ".join([line[0].ljust(widths[0]), *(line[k].rjust(widths[k]) for k in range(1, len(header)))])
        for line in lines
    ]


def _lower(size: int) -> int:
    return size * (size + 1) // 2


def _full(values: Any, rows: Any, columns: Any, size: int) -> Any:
    matrix = np.zeros((size, size))
    matrix[rows, columns] = matrix[columns, rows] = values
    return matrix


def _check_finite(values: Any, rows: Any, columns: Any) -> None:
    bad = np.nonzero(~np.isfinite(values))[0]
    if len(bad):
        raise ArgumentError(
            f"the Hessian is not finite at the example point: entry ({rows[bad[0]]}, {columns[bad[0]]}) is "
            f"{values[bad[0]]}",
            why=f"{len(bad)} of {len(values)} entries are NaN or infinite",
            do="choose a point where the function is twice differentiable",
        )


def _check_pattern(found: Study, exact: list[Any]) -> None:
    """Every entry outside the pattern has to be exactly zero on the other route."""
    size = found.matrix.shape[0]
    inside = set(zip(found.rows.tolist(), found.columns.tolist(), strict=True))
    for i in range(size):
        for j in range(i + 1):
            if (i, j) not in inside and abs(exact[i * size + j]) > 0:
                raise ArgumentError(f"entry ({i}, {j}) is outside the pattern but not zero", why="a defect of symad")


def _time_call(kernel: Kernel, arguments: tuple[Any, ...]) -> float:
    timer = timeit.Timer(lambda: kernel(*arguments))
    number, _ = timer.autorange()
    return min(timer.repeat(3, number)) / number


def show_progress(stage: str) -> None:
    """Write the name of a long stage to a terminal's standard error, over the previous one."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{stage} ..." if stage else "\r\x1b[K")
        sys.stderr.flush()
