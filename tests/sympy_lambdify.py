"""SymPy's own tests of lambdify, with ours in its place: `python -m tests.sympy_lambdify [NAME...]`.

The file is that of the installed SymPy (`sympy/utilities/tests/test_lambdify.py`); it is imported, and its name
`lambdify` is bound to ours. Printed is what passed, how much of that by machine code alone, and what did not, with the
reason that REASONS has.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import codegen
from codegen.lambdified.modules import Theirs

REASONS = {
    "test_Sum": "asks for the integer 462; machine code gives 462.0, which SymPy calls unequal",
    "test_curly_matrix_symbol": "gives a number in place of a matrix of two rows: refused by name",
    "test_issue_13881": "asks for 14 of X*X.T, where X has three rows: that is a matrix of three rows and columns",
    "test_issue_15827": "leaves the symbol k without a value: refused by name",
    "test_issue_17898": "asks for a complex value at a real number, where machine code for real numbers gives NaN",
    "test_issue_20070": "has numba compile the function's Python code, and there is none",
    "test_lambdify_inspect": "reads the function's Python code, and there is none",
    "test_lambdify_linecache": "reads the function's Python code, and there is none",
    "test_str_args": "gives texts, which SymPy evaluates: refused by name",
    "test_sym_list_args": "leaves the symbol z without a value: refused by name",
    "test_sym_single_arg": "leaves the symbol y without a value: refused by name",
    "test_vector_discontinuous": "asks for a ZeroDivisionError, where machine code gives infinity",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a test: "passed", "skipped", "refused" or "failed"; `native` where no Python code was taken."""

    name: str
    kind: str
    native: bool
    error: str = ""


def names(tests: ModuleType) -> list[str]:
    """Return the names of all tests."""
    return [name for name in vars(tests) if name.startswith("test_")]


def outcomes(only: Sequence[str] = ()) -> Iterator[Outcome]:
    """Carry out SymPy's tests with our lambdify in the place of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = import_module("sympy.utilities.tests.test_lambdify")
        theirs, function, python = tests.lambdify, Theirs.function, []

        def counted(self: Theirs, modules: Any) -> Any:
            python.append(modules)
            return function(self, modules)

        tests.lambdify, Theirs.function = codegen.lambdify, counted  # type: ignore[method-assign]
        try:
            for name in only or names(tests):
                python.clear()
                kind, error = _outcome(tests, name)
                yield Outcome(name, kind, kind == "passed" and not python, error)
        finally:
            tests.lambdify, Theirs.function = theirs, function  # type: ignore[method-assign]


def _outcome(tests: ModuleType, name: str) -> tuple[str, str]:
    try:
        getattr(tests, name)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        kind = "refused" if isinstance(error, codegen.WorkbenchError) else "failed"
        if type(error).__name__ in ("Skipped", "SkipTest"):
            kind = "skipped"
        return kind, f"{type(error).__name__}: {error}".partition("\n")[0]
    return "passed", ""


def main(arguments: Sequence[str]) -> int:
    """Print what became of the tests; 1 where one that is not in REASONS did not pass."""
    found = list(outcomes(arguments))
    counts = Counter(outcome.kind for outcome in found)
    run = len(found) - counts["skipped"]
    native = sum(outcome.native for outcome in found)
    print(f"{counts['passed']} of {run} passed ({native} by machine code alone), {counts['skipped']} skipped by SymPy")
    open_ones = [outcome for outcome in found if outcome.kind in ("failed", "refused")]
    for outcome in open_ones:
        print(f"{outcome.name}: {REASONS.get(outcome.name, outcome.error)}")
    return int(any(outcome.name not in REASONS for outcome in open_ones))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
