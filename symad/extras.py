"""Optional packages: imported where they are used. A missing one is named with its extra."""

from __future__ import annotations

import importlib
from typing import Any

from symad.errors import ArgumentError

EXTRAS = {
    "igraph": "draw",
    "cairosvg": "pictures",
    "flint": "rigorous",
    "shtab": "completion",
    "pandas": "table",
    "scipy": "special",
    "ipyopt": "ipopt",
    "distributed": "cluster",
    "jax": "jax",
    "sksundae": "sundials",
    "torch": "torch",
    "pytensor": "pytensor",
}


def optional(module: str, purpose: str) -> Any:
    """Return an optional module; ArgumentError that names the extra to install when it is missing.

    >>> optional("igraph.nothing", "pictures")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    codegen.errors.ArgumentError: pictures without igraph: ...; pip install 'symad[draw]'
    """
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:  # or a library of the system that it needs is missing
        extra = EXTRAS[module.partition(".")[0]]
        do = f"pip install 'symad[{extra}]'"
        raise ArgumentError(f"{purpose} without {module.partition('.')[0]}", why=str(error), do=do) from error
