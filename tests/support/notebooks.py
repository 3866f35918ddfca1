"""Notebooks read and checked by nbformat, imported when one is read: without it, the tests that need it fail alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def read_notebook(text: str) -> Any:
    """Return a notebook; an error where it breaks the schema of its version."""
    nbformat = import_module("nbformat")
    found = nbformat.reads(text, 4)
    nbformat.validate(found)
    return found
