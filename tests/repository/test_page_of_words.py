"""The page of words: every class that it names exists, every word has one line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")


def test_every_class_on_the_page_of_words_exists():
    files = [path for room in ("symad", "codegen") for path in (ROOT / room).rglob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    classes = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    named = set(re.findall(r"`([A-Z][a-z]\w+)`", PAGE))
    assert len(named) > 30
    assert named - classes == set()


def test_every_word_stands_once():
    words = [word for row in re.findall(r"^\| ([^|`]+) \|", PAGE, re.MULTILINE) for word in row.split(", ")]
    assert sorted({word for word in words if words.count(word) > 1} - {"word", "meaning"}) == []
