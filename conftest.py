"""Every test and doctest, and every process that one starts, is strict; the quick ones among them are marked.

`sh .ci/quick` runs those that fail most often, in under a minute: `pytest -m quick` without the doctests.
"""

import os
from pathlib import Path

import pytest

os.environ.setdefault("SYMAD_STRICT", "1")  # see codegen.ir.strictness

ROOT = Path(__file__).parent
QUICK = {
    "tests/codegen/test_check.py", "tests/codegen/test_copy_rows.py", "tests/codegen/test_interpret.py",
    "tests/codegen/test_lower.py", "tests/codegen/test_price.py", "tests/codegen/test_readdress.py",
    "tests/codegen/test_rolled_evaluate.py", "tests/codegen/test_rolled_kernel.py", "tests/codegen/test_sweep.py",
    "tests/compiling", "tests/derivatives/test_level.py", "tests/derivatives/test_linear.py",
    "tests/graph/test_table.py", "tests/regions/test_contraction.py", "tests/regions/test_derive.py",
    "tests/regions/test_fusion.py", "tests/regions/test_live_ranges.py", "tests/structure/test_sums.py",
    "tests/test_layering.py", "tests/test_readme.py", "tests/test_strategy.py", "tests/test_tables.py",
    "tests/tracing/test_arrays.py", "tests/tracing/test_paths.py", "tests/tracing/test_scalars.py",
}  # fmt: skip
SLOW = {"test_a_chain_of_a_million_nodes_is_ordinary", "test_second_partials_are_40_digit_derivatives"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests."""
    for item in items:
        path = item.path.relative_to(ROOT)
        quick = {path.as_posix(), path.parent.as_posix()} & QUICK
        if quick and getattr(item, "originalname", item.name) not in SLOW:
            item.add_marker(pytest.mark.quick)
