"""Mutation testing: small defects are planted one by one, and the tests near each are run.

`python -m tests.mutants [--count N] [--seed S] [ROOM ...]` works on a copy of the repository. A mutant that no test
notices is printed with its line: it needs a test, or it is equivalent to the original.

A mutant negates a condition, adds one to a constant, changes a sign or an operator, or leaves out a statement.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "symad/rules", "symad/derivatives", "symad/reach", "codegen/loops/optimise", "codegen/lowering",
    "codegen/encoding", "codegen/emission",
)  # fmt: skip
SECONDS = 240  # for the tests near one mutant
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


class Mutant(NamedTuple):
    """A defect: its file, its line, what is different, and the whole changed text."""

    file: Path
    line: int
    what: str
    text: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for place, node in enumerate(ast.walk(tree)):
        what = _change(copy.deepcopy(node))
        if what:
            changed = copy.deepcopy(tree)
            _change(next(one for k, one in enumerate(ast.walk(changed)) if k == place))
            yield Mutant(path, getattr(node, "lineno", 0), what, ast.unparse(changed))


def _change(node: ast.AST) -> str:
    """Change a node in its place; return what was done, "" where nothing can be."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "a condition is negated"
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        old = ast.unparse(node)
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
        return f"{old} becomes {ast.unparse(node)}"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _is_of_types(node):
        old = ast.unparse(node)
        node.op = OPERATORS[type(node.op)]()
        return f"{old} becomes {ast.unparse(node)}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
        return f"the sign of {ast.unparse(node.operand)} is lost"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
        return f"the constant {node.value - 1} becomes {node.value}"
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        old = ast.unparse(node)
        node.__class__ = ast.Pass  # type: ignore[assignment]
        return f"left out: {old}"
    return ""


def _is_of_types(node: ast.BinOp) -> bool:
    """Whether an operation is one of annotations, `int | None`."""
    parts = ast.unparse(node)
    return isinstance(node.op, ast.BitOr) and ("None" in parts or parts[0].isupper())


def tests_near(path: Path) -> list[str]:
    """Return the tests of a file: those that mirror it first, then those of its room, then of the room around it."""
    folder, stem = Path("tests") / path.relative_to(ROOT).parent, path.stem
    named = [ROOT / folder / f"test_{name}.py" for name in (stem, stem.rstrip("s"), f"{stem}s")]
    places = [*filter(Path.exists, named), *(ROOT / part for part in (folder, *folder.parents) if len(part.parts) > 2)]
    places = [place for place in places if place.exists()] or [ROOT / "tests" / folder.parts[1] / folder.parts[2]]
    return list(dict.fromkeys(place.relative_to(ROOT).as_posix() for place in places))


def outcome(mutant: Mutant, copied: Path) -> str:
    """Return what the tests near a mutant say: killed, survived, or timeout (killed too: it hangs)."""
    target = copied / mutant.file.relative_to(ROOT)
    original = target.read_text(encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
    line = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
    try:
        target.write_text(mutant.text, encoding="utf-8")
        for place in tests_near(mutant.file):
            done = subprocess.run([*line, place], cwd=copied, env=environment, capture_output=True, timeout=SECONDS,
                                  check=False)  # fmt: skip
            if done.returncode not in (0, 5):  # 5: there are no tests
                return "killed"
        return "survived"
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        target.write_text(original, encoding="utf-8")


def main() -> None:
    """Plant some mutants, and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=ROOMS, metavar="ROOM")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    choice = random.Random(asked.seed)
    files = [path for room in asked.rooms for path in sorted((ROOT / room).rglob("*.py")) if path.stem != "__init__"]
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "copy"
        shutil.copytree(ROOT, copied, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache"))
        subprocess.run([sys.executable, "-m", "compileall", "-q", "symad", "codegen"], cwd=copied, check=True)
        while sum(counts.values()) < asked.count:
            path = choice.choice(files)
            possible = list(mutants_of(path))
            if not possible:
                continue
            mutant = choice.choice(possible)
            found = outcome(mutant, copied)
            counts[found] += 1
            if found == "survived":
                print(f"{path.relative_to(ROOT)}:{mutant.line}: {mutant.what}", flush=True)
            print(dict(counts), file=sys.stderr, flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
