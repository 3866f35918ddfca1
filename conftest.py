"""Every test and doctest, and every process that one starts, is strict; the quick ones among them are marked.

`sh .ci/quick` runs those that fail most often, in under a minute: `pytest -m quick` without the doctests. What a plain
`pytest` leaves out, to stay below ten minutes on two cores, is `pytest -m wide`.
"""

import gc
import os

import pytest

os.environ.setdefault("SYMAD_STRICT", "1")  # see codegen.ir.strictness

QUICK = {
    "arrays", "check", "contraction", "copy_rows", "derive", "fusion", "golden_plans", "interpret", "layering",
    "level", "linear", "live_ranges", "lower", "paths", "plan", "price", "readdress", "readme", "rolled_evaluate",
    "rolled_kernel", "scalars", "strategy", "sums", "sweep", "table", "tables",
}  # fmt: skip
SLOW = {"test_a_chain_of_a_million_nodes_is_ordinary", "test_second_partials_are_40_digit_derivatives"}
WIDE = {  # the same again, for more sizes, orders and programs: `sh .ci/wide`
    "test_results_stand_in_memory_as_numpys[columns]", "test_results_stand_in_memory_as_numpys[first axes swapped]",
    "test_what_is_left_to_the_paths_around_is_right_with_more_of_them", "test_random_programs_are_right[arrays-large]",
    "test_kernels[eigh-30]", "test_kernels[svd-30]", "test_kernels[svd of a high matrix-30]",
    "test_every_inner_mode_under_every_outer_mode[parameter]", "test_second_derivatives_along_a_direction[fluid]",
    "test_the_code_does_not_grow_with_the_number_of_steps[fluid]",
    "test_values_and_derivatives_are_those_of_numbers_and_of_differences[fluid]",
    "test_results_stand_in_memory_as_numpys[rows]", "test_values_and_derivatives_are_those_on_numbers[searched]",
    "test_values_and_derivatives_are_those_on_numbers[two_inside]", "test_a_large_series_is_a_few_operations",
    "test_second_derivatives_are_those_on_numbers[steps_controlled]", "test_axe_finds_nothing[390-844-dark]",
    "test_axe_finds_nothing[1280-800-light]", "test_a_lesson_fits_the_screen[1280-800]", "test_two_tabs_at_once",
    "test_calls_are_merged_where_the_paths_are_too_many[recursion]", "test_nothing_is_wrong_with_a_page[Lesson]",
    "test_the_documentation_is_generated_from_the_table", "test_a_series_has_a_series_of_derivatives[statistics]",
    "test_every_mode_gives_the_hessian_of_fifty_digit_sympy[network]",
    "test_values_and_derivatives_are_those_on_numbers[steps_controlled]",
}  # fmt: skip


gc.disable()  # while tests are collected: nothing dies, and a quarter of that time went into looking


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests, and the wide ones."""
    for item in items:
        if item.name in WIDE:
            item.add_marker(pytest.mark.wide)
        if item.path.stem.removeprefix("test_") in QUICK and getattr(item, "originalname", item.name) not in SLOW:
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
