"""Files and modules that pages and docstrings name in backticks exist."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:symad|codegen|tests|benchmarks|examples|docs)(?:/[\w.]+)*/\w+\.\w+)`")
SYMBOLS = {"codegen.parallel"}  # of machine code, no modules
DOTTED = re.compile(r"`((?:symad|codegen|tests|benchmarks)(?:\.\w+)+)`")


def texts() -> Iterator[tuple[str, str]]:
    """Yield pages and sources with their names."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    sources = [path for folder in ("symad", "codegen", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    for path in [*pages, *sources]:
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or may be what a module has."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:count])
        if place.with_suffix(".py").exists() or (place / "__init__.py").exists():
            rest = parts[count:]
            if not rest:
                return True
            if len(rest) > 2 or (count == 1 and rest[0] == "errors"):
                return importlib.util.find_spec(dotted) is not None
            source = place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
            stub = source.with_suffix(".pyi")
            return any(
                re.search(rf"\b{rest[0]}\b", one.read_text(encoding="utf-8")) for one in (source, stub) if one.exists()
            )
    return False


def test_files_exist() -> None:
    missing = {(where, name) for where, text in texts() for name in NAMED.findall(text) if not (ROOT / name).exists()}
    assert not missing


def test_modules_exist() -> None:
    named = {(where, name) for where, text in texts() for name in set(DOTTED.findall(text)) - SYMBOLS}
    assert not {(where, name) for where, name in named if not exists(name)}
