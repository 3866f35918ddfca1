"""The table of docs/seeds.md: what it names exists, each row is proved or says that it is not yet, none is missing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import symad as sa

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`((?:benchmarks|codegen|docs|examples|symad|tests)/[\w./-]+\.\w+)(?:::(\w+))?`")
HEADINGS = (
    "First-Order AD as a Transformation", "Example: Forward-over-Forward", "Dual Number Nesting",
    "Reverse-over-Reverse Nesting", "Mixed-Mode Nesting", "Perturbation Confusion", "Tagging Derivative Levels",
    "Cotangent Level Separation", "Closures and Higher-Order Functions", "Dynamic Computation Graphs",
    "Differentiating Optimizers", "Implicit Differentiation", "Tape Nesting", "Compiler Perspective",
    "Complexity Explosion", "Practical Design Principles", "Conceptual View",
    # and of 003
    "Loss Function containing Jacobian Computation", "Using Batched Jacobian for Multiple Inputs",
    "Loss Function contains Gradient Computation", "Loss Function computing the Jacobian of the Parameters",
    "Hutchinson Trace Estimation", "Vector-Jacobian Product", "Jacobian-Vector Product", "Full Jacobian",
)  # fmt: skip


def rows():
    """Return the cells of every row of every table."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| there |")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@cache
def definitions(path):
    """Return the names of all functions and classes that a Python file defines."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize(("path", "name"), sorted(set(REFERENCE.findall(PAGE))), ids="::".join)
def test_what_the_page_names_exists(path, name):
    assert (ROOT / path).is_file()
    assert not name or name in definitions(path)


def test_every_row_is_proved_or_not_yet():
    table = rows()
    assert len(table) > 80
    for cells in table:
        there, here, proof = [*cells, ""][:3]
        assert there
        assert here
        tests = [path for path, _ in REFERENCE.findall(proof)]
        assert tests or here.startswith("not yet: "), there
        assert all(path.startswith("tests/") for path in tests), there


def test_every_name_is_public_or_in_a_file_of_its_row():
    for there, here, *_ in rows():
        if not here.startswith("not yet: "):
            files = [path for path, _ in REFERENCE.findall(here) if path.endswith(".py")]
            known = {*sa.__all__, *sa.results.__all__}.union(*map(definitions, files))
            assert set(re.findall(r"`(\w+)`", here)) <= known, there


@pytest.mark.parametrize("heading", HEADINGS)
def test_every_heading_is_there(heading):
    assert heading in PAGE
