"""CasADi, which brings an Ipopt with headers: what links against Ipopt is tested with it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any


def casadi() -> Any:
    """Return the package; SWIG warns about itself under newer versions of Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import casadi  # noqa: PLC0415 - it warns

    return casadi


def with_its_ipopt() -> list[str]:
    """Return the options of a compiler that link its Ipopt, after what calls it."""
    folder = Path(casadi().__file__).parent
    return [f"-I{folder / 'include' / 'coin-or'}", f"-L{folder}", "-lipopt", "-lm", f"-Wl,-rpath,{folder}"]


def quiet(**options: Any) -> dict[str, Any]:
    """Return options of `nlpsol` for Ipopt without a word."""
    return {"ipopt": {"print_level": 0, "sb": "yes", **options}, "print_time": 0}
