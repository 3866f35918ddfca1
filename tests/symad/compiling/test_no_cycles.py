"""A build leaves nothing behind that only the collector of cycles can free: large graphs go when it ends."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.ir.machine_rows import Machine
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope


def chained(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def branching(x: Any) -> Any:
    return x[0] * x[1] if x[0] > x[1] else np.exp(x[1]) + x[0]


BUILDS: dict[str, Callable[[], object]] = {
    "straight lines": lambda: sa.compile(sa.hessian(chained, sparse="lower"), np.ones(5), roll="never", tier="fast"),
    "by LLVM": lambda: sa.compile(sa.grad(chained), np.ones(5), roll="never"),
    "paths": lambda: sa.compile(sa.grad(branching), np.ones(2), tier="fast"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_no_graph_waits_for_the_collector(name: str) -> None:
    BUILDS[name]()  # what is made once for all
    gc.collect()
    before = {id(each) for each in alive()}  # what other tests keep
    gc.disable()
    try:
        kernel = BUILDS[name]()
        assert [type(each) for each in alive() if id(each) not in before] == [], kernel
    finally:
        gc.enable()


def alive() -> list[object]:
    """Graphs, scopes and machine rows; `isinstance` would ask proxies, whose objects may have gone."""
    return [each for each in gc.get_objects() if issubclass(type(each), Graph | Scope | Machine)]
