"""The tables of `docs/performance.md`, made from those of the code: `python -m tests.support.performance_table`."""

from __future__ import annotations

from pathlib import Path

from codegen.functions.libraries import FUNCTIONS
from codegen.lowering.passes import PASSES
from tests.support.generated_tables import with_tables

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def pass_table() -> str:
    """One line for each pass, in the order in which they run."""
    lines = ["| pass | what it does | strict | effect on rounding |", "|---|---|---|---|"]
    lines += [
        f"| `{step.name}` | {step.does} | {'yes' if step.exact else 'no'} | {step.rounding} |"
        for step in PASSES
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def function_table() -> str:
    """One line for each vector function."""
    lines = ["| function | bound, ULP | calls that make a group |", "|---|---|---|"]
    lines += [f"| `{function.name}` | {function.ulp:g} | {function.fewest} |" for function in FUNCTIONS.values()]
    return "\n".join(lines) + "\n"


TABLES = {"passes": pass_table, "functions": function_table}


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), TABLES), encoding="utf-8")
