"""Which tests reach which statements, and a quick run of chosen tests in a copy of the repository.

The statements of a copy get a probe each, which adds its place to a set: far cheaper than a line tracer, and tests that
set a trace function are not disturbed. Tests run in forks of a process that has imported what takes long, NumPy, SymPy
and pytest, and nothing of ours.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROBE_MODULE = "reached_statements"
ROWS = 5  # of a table of tests
HEAVY = (
    "numpy", "sympy", "sympy.printing.str", "scipy.sparse", "scipy.optimize", "scipy.special", "scipy.stats", "pandas",
    "llvmlite.binding", "mpmath", "hypothesis", "doctest", "unittest.mock",
)  # fmt: skip


def import_heavy_modules() -> None:
    """Import what most tests import and what is not ours, so that forks have it."""
    for name in HEAVY:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)


def with_probes(text: str, path: str) -> str:
    """Return a file in which each statement of a function first adds its place, `path:line`, to a set."""
    tree = ast.parse(text)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for node in ast.walk(function):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and not isinstance(node, ast.ClassDef):
                    setattr(node, name, list(_probed(block, path)))
    heads = sum(isinstance(node, ast.Expr | ast.ImportFrom) and _is_head(node) for node in tree.body)
    tree.body.insert(heads, ast.parse(f"from {PROBE_MODULE} import REACHED as __reached__").body[0])
    return ast.unparse(tree)


def _is_head(node: ast.stmt) -> bool:
    """Whether a statement of a module must stay first: the docstring and what is imported from `__future__`."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _probed(block: list[ast.stmt], path: str) -> Iterator[ast.stmt]:
    for node in block:
        is_probe = isinstance(node, ast.Expr) and ast.unparse(node).startswith("__reached__")
        if hasattr(node, "probed") or is_probe or _is_head(node):
            yield node
            continue
        node.probed = True  # type: ignore[attr-defined]
        yield ast.parse(f"__reached__.add({f'{path}:{node.lineno}'!r})").body[0]
        yield node


class Recorder:
    """A plugin of pytest: records, for each test that passes, its seconds and the statements it reaches.

    Of the rows of a table only some are recorded, spread over the table.
    """

    def __init__(self, target: Path) -> None:
        self.target = target

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out most rows of long tables."""
        tables: dict[tuple[str, str], list[pytest.Item]] = {}
        for item in items:
            tables.setdefault((item.location[0], getattr(item, "originalname", item.name)), []).append(item)
        items[:] = [rows[k * len(rows) // ROWS] if len(rows) > ROWS else rows[k]
                    for rows in tables.values() for k in range(min(ROWS, len(rows)))]  # fmt: skip

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Forget what was reached before a test, and keep what is reached until its end."""
        reached: set[str] = importlib.import_module(PROBE_MODULE).REACHED
        reached.clear()
        self.passed, start = False, time.perf_counter()
        outcome = yield
        if self.passed and reached:
            row = [item.nodeid, round(time.perf_counter() - start, 3), sorted(reached)]
            with self.target.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
        return outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep whether a test passes."""
        if report.when == "call":
            self.passed = report.passed


class Selection:
    """A plugin of pytest: only the tests with given names, in their order."""

    def __init__(self, names: Iterable[str]) -> None:
        self.ranks = {name: rank for rank, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all other tests."""
        items[:] = sorted((item for item in items if item.nodeid in self.ranks), key=lambda i: self.ranks[i.nodeid])


def record(places: list[str], target: Path) -> None:
    """Run the tests at some places, and write what each reaches to a file, one line a test."""
    target.write_text("", encoding="utf-8")
    pytest.main(["-p", "no:cacheprovider", "--disable-plugin-autoload", *places], plugins=[Recorder(target)])


def fork(run: Callable[[], Any]) -> int:
    """Fork; the child calls a function and ends with the status that it returns. Return the child's number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        status = int(run() or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def start(copied: Path, run: Callable[[], Any], log: Path) -> int:
    """Fork; the child calls a function in a copied repository, and imports from there. Return the child's number."""

    def run_there() -> Any:
        os.setsid()
        os.chdir(copied)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.path[:] = [str(copied), *(place for place in sys.path if not (Path(place) / "symad").is_dir())]
        for name in [name for name in sys.modules if name.partition(".")[0] in ("symad", "codegen", "tests")]:
            del sys.modules[name]
        os.environ["PYTHONPATH"] = str(copied)
        sys.dont_write_bytecode = False  # tests with rewritten assertions are kept in the copy
        return run()

    return fork(run_there)


def end(child: int, seconds: float) -> int | None:
    """Return the status of a child when it has ended; after so many seconds end it and all that it started: None."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
