"""Mutants without a start-up: one process has collected all tests, and forks for each mutant.

In the fork the functions of the mutated file get the code of the mutant, and the tests that reach it are run. What is
computed while modules are imported is as without the mutant, so one that survives here is to be tried from a start.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.support.reached_lines import end, fork


def functions_of(folders: Sequence[Path]) -> dict[str, list[FunctionType]]:
    """Import all modules of some rooms, and return their functions, also those in tables and closures, by file."""
    root = Path.cwd()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.stem != "__init__":
                importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
    gc.unfreeze()
    functions = defaultdict[str, list[FunctionType]](list)
    for value in gc.get_objects():
        if type(value) is FunctionType:
            functions[value.__code__.co_filename].append(value)
    gc.freeze()
    return functions


def plant(tree: ast.Module, file: Path, functions: Sequence[FunctionType]) -> bool:
    """Give functions of a file the code that a changed tree has for them; False where that is not possible."""
    changed = {_key(code): code for code in _codes(compile(ast.fix_missing_locations(tree), str(file), "exec"))}
    try:
        for function in functions:
            function.__code__ = changed[_key(function.__code__)]
    except (KeyError, ValueError):  # the mutant has another number of closures
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _key(code: CodeType) -> tuple[Any, ...]:
    """Return what tells a function from the others of its file; two lambdas of one line differ in their columns."""
    column = min((column for *_, column, _ in code.co_positions() if column is not None), default=0)
    return code.co_qualname, code.co_firstlineno, column if code.co_name == "<lambda>" else 0


class Forks:
    """A plugin of pytest: instead of running the tests, calls `work` with a function that tries one mutant."""

    def __init__(self, folders: Sequence[Path], work: Callable[[Callable[..., str]], None]) -> None:
        self.folders, self.work = folders, work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions = functions_of(self.folders)
        self.session = session
        self.work(self.outcome)
        return True

    def outcome(self, tree: ast.Module, file: Path, names: Sequence[str], seconds: float) -> str:
        """Return what tests say of a changed file: killed, survived, timeout; impossible where none can say."""
        items = [self.items[name] for name in names if name in self.items]
        functions = self.functions.get(str(file), [])

        def run() -> int:
            os.setsid()
            if not functions or not plant(tree, file, functions):
                return 3
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.session.testsfailed:
                    return 1
            return 0

        status = end(fork(run), seconds)
        return {None: "timeout", 0: "survived", 3: "impossible"}.get(status, "killed")
