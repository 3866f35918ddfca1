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

os.environ.setdefault("SYMAD_STRICT", "1")  # see codegen.ir.strictness
if "XDG_DATA_HOME" not in os.environ:  # the key that tests mark machine code with is not the user's
    os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="symad-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

collect_ignore = [
    f"symad/solving/with_{name}.py" for name in ("jax", "torch", "pytensor") if not find_spec(name)
]  # examples

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
    "test_values_and_derivatives_are_those_on_numbers[steps_controlled]", "test_jax_agrees[arrays-large]",
    "test_jax_agrees[nested]", "test_jax_sees_a_wrong_rule", "test_robertson_against_fifty_digits",
    "test_a_terminal_shows_how_long_there_is_to_go", "test_the_hessian_of_a_fit_against_fifty_digits",
    "test_a_limit_that_is_caught",
}  # fmt: skip
THINNED = {  # of these tables three rows in four are wide tests: each takes seconds, and a row is like its neighbours
    "test_accessibility": {"test_nothing_is_wrong_with_a_page"},
    "test_bands": {"test_blocks_of_a_band", "test_entries_in_turns"},
    "test_kernel_solvers": {
        "test_other_methods_than_scipys_have_the_same_derivatives", "test_values_gradients_and_hessians_of_kernels",
    },
    "test_comparisons_page": {"test_the_page_is_up_to_date"}, "test_derive_nests": {"test_any_number_of_rounds"},
    "test_lessons_in_steps": {
        "test_each_lesson_has_steps_whose_panes_answer", "test_the_steps_come_as_they_are_written_and_then_run",
    },
    "test_limits": {"test_ctrl_c_comes_through_in_every_stage"},
    "test_ode": {"test_the_brusselator_has_a_sparse_jacobian"},
    "test_copies": {"test_bodies_leave_a_value_in_all_its_places"},
    "test_threads": {"test_blocks_of_three_by_three_beside_copies"},
    "test_single_precision": {"test_gradients"},
    "test_export": {
        "test_every_head_has_the_same_bits_in_every_form", "test_expressions_have_the_same_bits_in_every_form",
    },
    "test_lagrangian": {"test_the_derivatives_of_large_problems_are_loops"},
    "test_lessons": {"test_a_lesson_runs_as_a_notebook", "test_a_lesson_runs_as_a_script"},
    "test_losses": {"test_every_inner_mode_under_every_outer_mode"}, "test_masks_compiled": {"test_masks"},
    "test_moving_jumps": {"test_a_jump_that_moves_is_refused"},
    "test_nests": {"test_gradients_are_those_of_straight_lines"},
    "test_random_programs": {"test_most_programs_are_what_they_are_for"},
    "test_scipy_refusals": {"test_compiled_code_that_breaks_on_refusals_does_not_end_the_process"},
    "test_time_steps": {"test_checkpoints_cut_the_steps_into_segments"},
    "test_with_jax": {"test_as_jax_itself"},
    "test_bisecting": {"test_with_any_number_of_optional_passes_the_numbers_are_right"},
    "test_book": {"test_all_forms"}, "test_bounded_loops": {"test_loops_of_numbers"},
    "test_distributions": {"test_continuous"},
    "test_dump": {"test_with_any_number_of_optional_passes_the_numbers_are_right"},
    "test_expand": {"test_the_expression_of_every_head_has_the_value_of_the_graph"},
    "test_expand_page": {"test_pages_have_all_forms"},
    "test_export_transforms": {"test_sweeps_have_the_same_bits_in_every_form"},
    "test_fourier": {
        "test_convolutions_are_scipys", "test_derivatives_of_every_order_and_mode", "test_real_transforms_are_scipys",
    },
    "test_fuzz": {"test_random_programs"}, "test_jacobians": {"test_random_programs_with_branches_by_every_order"},
    "test_kinks_in_loops": {
        "test_all_modes_agree_at_singular_points", "test_loops_and_straight_lines_agree_at_singular_points",
    },
    "test_known_answers_in_loops": {"test_known_derivatives"},
    "test_labelled_arrays": {"test_a_series_has_a_series_of_derivatives"},
    "test_layouts": {"test_a_store_is_seen_where_numpy_has_a_view"},
    "test_masks_stored": {"test_what_is_stored_in_what_a_mask_picks_reaches_it"},
    "test_matrix_rules": {
        "test_derivatives_of_rounds_are_those_of_operations_one_by_one",
        "test_first_and_second_derivatives_are_those_of_loops",
    },
    "test_merged_paths": {"test_derivatives_of_many_paths"}, "test_nan_policy": {"test_conventions_of_one_variable"},
    "test_nests_bodies": {"test_values_and_gradients"}, "test_numpy_table": {"test_kernels"},
    "test_object_arrays": {"test_every_array_is_that_of_floats"},
    "test_objectives_corpus": {"test_compiled", "test_derivatives"},
    "test_optimisers": {
        "test_a_thousand_steps_against_central_differences_in_50_digits",
        "test_converged_loops_agree_with_implicit_differentiation",
        "test_optimisers_by_every_mode_and_by_complex_steps",
    },
    "test_orders": {
        "test_all_modes_agree", "test_kernels_have_the_derivatives_at_points", "test_what_is_written_out_agrees",
    },
    "test_rolling": {"test_scalars"},
    "test_rolling_in_code": {"test_transforms_in_the_code_have_the_values_of_straight_lines"},
    "test_scipy_matrices": {"test_values_and_derivatives"},
    "test_scipy_table": {
        "test_kernels_of_scipy_calls", "test_second_derivatives_of_scipy_calls",
        "test_values_and_derivatives_of_scipy_calls",
    },
    "test_special": {"test_values_and_derivatives"}, "test_spectra": {"test_derivatives_on_numbers", "test_kernels"},
    "test_stepped_loops": {"test_values_and_derivatives_are_those_on_numbers"},
    "test_sweep": {"test_hessians_by_sweep_agree_with_straight_line_code"},
    "test_tables": {"test_second_partials_are_40_digit_derivatives"},
    "test_taylor": {"test_every_head_against_nested_forward_mode_at_60_digits"},
    "test_tensor": {"test_dense_and_sparse_tensors_against_nested_forward_mode"},
    "test_words": {"test_every_word_gives_the_same_directional_derivative"},
}  # fmt: skip


gc.disable()  # while tests are collected: nothing dies, and a quarter of that time went into looking


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests, and the wide ones."""
    rows = Counter[tuple[str, str]]()
    for item in items:
        table = item.path.stem, getattr(item, "originalname", item.name)
        rows[table] += 1
        if item.name in WIDE or (table[1] in THINNED.get(table[0], ()) and rows[table] % 4 != 1):
            item.add_marker(pytest.mark.wide)
        if item.path.stem.removeprefix("test_") in QUICK and table[1] not in SLOW:
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
