"""NVIDIA's assembler, which says whether PTX is right, and how many registers it takes; it needs no GPU."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MISSING = "no ptxas: pip install nvidia-cuda-nvcc-cu12, or put CUDA's on the PATH"


@dataclass(frozen=True)
class Assembled:
    """What the assembler says of a kernel: registers of a thread, bytes of local memory, bytes that are spilled."""

    registers: int
    local: int
    spilled: int


def ptxas() -> str | None:
    """Return the assembler of the PATH, or that of NVIDIA's wheels."""
    found = shutil.which("ptxas")
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    wheels = [str(path) for folder in folders for path in Path(folder).glob("*/bin/ptxas")]
    return found or next(iter(wheels), None)


def assembled(ptx: str, architecture: str, folder: Path) -> Assembled:
    """Assemble PTX; AssertionError with the assembler's words where it is refused."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    line = [str(ptxas()), f"-arch={architecture}", "-v", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    registers, local, spilled = (
        int(found[1]) if (found := re.search(pattern, done.stderr)) else 0
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes spill stores")
    )
    return Assembled(registers, local, spilled)
