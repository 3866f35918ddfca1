"""The rows of `benchmarks.structure`: what they compute is right, by ways that share no code. No times are taken."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks.structure
import symad as sa
from benchmarks.structure import cases, growth, jets, problems, references
from benchmarks.structure.__main__ import main, report
from benchmarks.structure.cases import Case, Family
from benchmarks.structure.entries import Entries, difference, entries
from benchmarks.structure.ours import SymadAlways, written

FAMILIES = {
    "lennard-jones": cases.lennard_jones(4),
    "rosenbrock": cases.chain(6, "rosenbrock-6", ""),
    "logistic": cases.logistic(7, 3),
    "line": cases.reaction_1d(6),
    "square": cases.reaction_2d(3),
    "grid": cases.grid(problems.make_grid(6, 7, 4)),
    "network": cases.network(),
    "momentum": cases.momentum(1, 5e-4),
}
KINDS = {
    **dict.fromkeys(("lennard-jones", "rosenbrock", "logistic", "grid"), ("value", "gradient", "hessian")),
    **dict.fromkeys(("line", "square"), ("value", "jacobian")),
    "network": ("gradient", "product"),
    "momentum": ("value", "tangent", "gradient"),
}
ROWS = [Case(FAMILIES[name], kind) for name, kinds in KINDS.items() for kind in kinds]  # type: ignore[arg-type]


def evaluated(case: Case, x: Any) -> Entries:
    """Return the entries by symad's transforms, on numbers: no kernel, no loops."""
    f, size = case.function, x.size
    if case.kind == "product":
        point, direction = np.split(x, 2)
        return row(sa.hvp(f, (point,), (direction,)), size)
    if case.kind in ("hessian", "jacobian"):
        matrix = np.asarray(sa.hessian(f)(x) if case.kind == "hessian" else sa.jacobian(f)(x))
        rows, columns = np.indices(matrix.shape).reshape(2, -1)
        return entries(rows, columns, matrix.ravel(), size, lower=case.kind == "hessian")
    if case.kind == "tangent":
        return row(sa.jvp(f, (x,), (np.ones(1),))[1], size)
    return row(sa.grad(f)(x) if case.kind == "gradient" else f(x), size)


def row(values: Any, size: int) -> Entries:
    """Return the entries of a vector."""
    flat = np.atleast_1d(values)
    return entries(np.zeros(flat.size), np.arange(flat.size), flat, size, lower=False)


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_right_values_are_those_of_the_plain_function(case: Case) -> None:
    steps = case.family.steps  # ten steps: of four derivatives each to its own size, one cancels to a thousandth
    for x in case.points():
        assert difference(evaluated(case, x), case.right(x), bool(steps)) < (1e-12 if steps else 1e-13)


@pytest.mark.parametrize("name", ["rosenbrock", "logistic", "momentum"])
def test_a_loop_written_down_is_the_plain_function(name: str) -> None:
    plain = FAMILIES[name]
    how = "scan" if plain.steps else "sum_over"
    told = Family(
        plain.name, "", plain.function, plain.point, 0.1, plain.reference, plain.terms, how, steps=plain.steps
    )
    case = Case(told, "value")
    for x in case.points():
        assert written(case)(x) == pytest.approx(plain.function(x), rel=1e-13)


LARGER = [
    Case(cases.lennard_jones(6), "hessian"),
    Case(cases.chain(40, "rosenbrock-40", "", "sum_over"), "gradient"),
    Case(cases.logistic(30, 3), "value"),
    Case(cases.reaction_2d(6), "jacobian"),
    Case(cases.grid(problems.make_grid(20, 24, 9)), "hessian"),
    Case(cases.network(), "product"),
    Case(cases.momentum(2, 5e-4, "scan"), "tangent"),
]


@pytest.mark.parametrize("case", LARGER, ids=lambda case: case.name)
def test_ours_are_asked_for_what_the_row_says(case: Case) -> None:
    candidate = SymadAlways()
    evaluator = candidate.build(case)
    assert candidate.facts["chosen"] == "rolled"
    assert candidate.facts["regions"] >= 1
    assert candidate.facts["lines"] > 10
    for x in case.points():
        values = evaluator.read(evaluator.bind(x)()).copy()
        found = entries(*evaluator.pattern, values, case.point.size, lower=case.kind == "hessian")
        assert difference(found, case.right(x), bool(case.family.steps)) < 1e-12


def test_the_loss_by_matrices_is_that_of_the_bodies() -> None:
    family = FAMILIES["logistic"]
    assert family.terms is not None
    for kind in ("value", "gradient", "hessian"):
        bodies = references.of_terms(family.terms(), family.point, kind)
        assert difference(bodies, family.reference(family.point, kind)) < 1e-14


def test_jets_know_second_derivatives_of_quotients_and_functions() -> None:
    x, y = jets.seeds(np.array([[0.7, 0.3]]), order=2)
    f = jets.FUNCTIONS
    found = f.exp(f.sin(x) / y) - 2 / f.cos(x * y) + f.log(y**3) * (1 - x)
    right = sa.hessian(lambda z: np.exp(np.sin(z[0]) / z[1]) - 2 / np.cos(z[0] * z[1]) + np.log(z[1] ** 3) * (1 - z[0]))
    assert found.second[0] == pytest.approx(right(np.array([0.7, 0.3])), rel=1e-13)


def test_a_grid_has_every_bus_and_no_branch_to_itself() -> None:
    grid = problems.make_grid()
    branches = np.vstack([grid.lines, grid.transformers])
    assert (len(grid.lines), len(grid.transformers)) == (304, 107)
    assert set(branches.ravel().tolist()) == set(range(300))
    assert (branches[:, 0] != branches[:, 1]).all()


def test_differences_see_missing_and_wrong_entries() -> None:
    right = entries([0, 1], [0, 1], [1.0, 2.0], 2, lower=False)
    assert difference(entries([0], [0], [1.0], 2, lower=False), right) == 1.0
    assert difference(entries([0, 1, 1], [0, 1, 0], [1.0, 2.0, 0.5], 2, lower=False), right) == 0.25
    assert difference(entries([0, 1], [0, 1], [np.nan, 2.0], 2, lower=False), right) == float("inf")
    assert difference(entries([0, 1], [0, 1], [1.5, 2.0], 2, lower=False), right, each=True) == 0.5


def test_rows_have_their_smaller_ones_and_small_values_at_both_points() -> None:
    rows = cases.make_cases()
    assert all(case.easier[-1] in rows for case in rows.values() if case.family.smaller)
    assert all(case.twin in rows for case in rows.values() if case.family.twin)
    assert all(np.isfinite(case.function(case.point)).all() for name, case in rows.items() if name.startswith("lj10"))


def test_a_report_says_who_is_best_and_what_is_missed(tmp_path: Path) -> None:
    facts = {"traced": 9, "regions": 1, "trace": 0.1, "detect": 0.2, "rest": 0.3, "lines": 40, "chosen": "rolled"}
    mine = {"microseconds": 2.0, "difference": 1e-16, "to straight": 0.0, "facts": facts, "seconds": 1.0}
    peer = {"microseconds": 8.0, "difference": 1e-16, "seconds": 1.0}
    found = {"auto": mine, "always": mine, "never": {"reason": "build > 60 s"}, "jax": peer}
    found["fast"] = {**mine, "microseconds": 1.0}
    found["threads"] = {**mine, "microseconds": 0.5}
    text = report({"rows": {"lj50-hessian": found, "lj10-hessian": found | {"heyoka": {**peer, "microseconds": 1.0}}}})
    assert "| 1 | 0.5 | JAX by hand, 8 | 4 | 8 | 0.0e+00 |" in text
    assert "goal 5 x met by fast only" in text
    assert "goal 1 x met by fast only" in text
    assert "| heyoka, 1 | 0.5 | 1 |" in text
    assert "symad, straight: build > 60 s" in text
    numbers = tmp_path / "structure.json"
    numbers.write_text(json.dumps({"rows": {"lj50-hessian": {"auto": {"difference": 1e-9}}}}), encoding="utf-8")
    with pytest.raises(SystemExit, match="unknown: nothing"):
        main(["--rows", "nothing", "--output", str(tmp_path)])


def test_growth_is_called_what_it_is() -> None:
    def build(traced: int, rest: float, lines: int) -> dict[str, Any]:
        facts = {"traced": traced, "trace": 0.1, "detect": 0.2, "rest": rest, "lines": lines, "workspace": 1024}
        return {"facts": facts, "mebibytes": 2.0, "seconds": 1.0}

    series = {"10": build(90, 0.1, 70), "20": build(180, 0.1, 70), "30": build(2**20, 0.3, 71)}
    text = growth.report({"a series": series})
    assert "| 20 | 180 | 0.1 | 0.2 | 0.1 | 70 | 1 | 2 |" in text
    assert "From 20 to 30: IR lines x 1.01 (flat), time after trace and detection x 3.00 (not flat)" in text
    assert "2 bytes to each operation traced" in text
    assert "Too few sizes" in growth.report({"a series": {"10": build(90, 0.1, 70), "20": {"reason": "build > 60 s"}}})


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(benchmarks.structure.__path__)])
def test_examples_in_the_files(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"benchmarks.structure.{name}")).failed == 0
