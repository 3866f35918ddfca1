"""Every test and doctest, and every process that one starts, is strict; the quick ones among them are marked.

`sh .ci/quick` runs those that fail most often, in under a minute: `pytest -m quick` without the doctests. What a plain
`pytest` leaves out, to stay below ten minutes on two cores, is `pytest -m wide`.
"""

import atexit
import gc
import os
import shutil
import tempfile
from collections import Counter
from importlib.util import find_spec

import pytest

from tests.seconds import is_wide, listed

os.environ.setdefault("SYMAD_STRICT", "1")  # see codegen.ir.strictness
if "XDG_DATA_HOME" not in os.environ:  # the key that tests mark machine code with is not the user's
    os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="symad-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

collect_ignore = [
    f"symad/doors/with_{name}.py" for name in ("jax", "torch", "pytensor") if not find_spec(name)
]  # examples

QUICK = {
    "arrays", "check", "contraction", "copy_rows", "derive", "fusion", "golden_plans", "interpret", "layering",
    "level", "linear", "live_ranges", "lower", "paths", "plan", "price", "readdress", "readme", "rolled_evaluate",
    "rolled_kernel", "scalars", "strategy", "sums", "sweep", "table", "tables",
}  # fmt: skip
SLOW = {"test_second_partials_are_40_digit_derivatives"}


gc.disable()  # while tests are collected: nothing dies, and a quarter of that time went into looking


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests, and the wide ones, which take long (see `tests.seconds`).

    What is the same again, for more sizes, orders and programs, has one of the marks `wide`, `thinned`, for three rows
    of four, and `wide_rows`, for the rows with these names. Of the first four rows the first stays, then the fourth of
    four, the third, the second, and so on, so that all columns of a product have some.
    """
    rows, seconds = Counter[str](), listed()
    for item in items:
        name, table = getattr(item, "originalname", item.name), item.nodeid.partition("[")[0]
        if is_wide(item.nodeid, rows[table], seconds):
            item.add_marker(pytest.mark.wide)
        rounds, place = divmod(rows[table], 4)
        rows[table] += 1
        thinned = item.get_closest_marker("thinned") and (rounds + place) % 4
        named = item.get_closest_marker("wide_rows")
        if thinned or (named and item.name.partition("[")[2].removesuffix("]") in named.args):
            item.add_marker(pytest.mark.wide)
        if item.path.stem.removeprefix("test_") in QUICK and name not in SLOW:
            item.add_marker(pytest.mark.quick)


def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's sight: tests that collect look at what they made.

    It looks at fifty thousand new objects at once: with the few hundred of Python's default every twelfth second of all
    tests went into looking again and again through the same graphs. Where it may come in the middle of anything is
    tested in `tests/support/kernel_threads.py`, which makes it come more often than by default.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()
