"""The machine and the versions that a report was made with, and how many of its cores a measurement may use."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import llvmlite.binding as llvm

from benchmarks.peers import FLAGS
from codegen.processor import vector_bits

PACKAGES = ("numpy", "sympy", "llvmlite", "scipy", "matplotlib")


def processor_name() -> str:
    """Return the processor's name where the system tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def folder_name() -> str:
    """Return the name under which results of this kind of machine are kept: some hide the long registers."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{processor_name()} {os.cpu_count()} cores {vector_bits()} bits".lower())
    return words.strip("-")


def describe(candidates: Iterator[str]) -> str:
    """Return the lines about machine, interpreter, libraries and the C compiler."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES if _installed(name)]
    version = ".".join(str(part) for part in llvm.llvm_version_info)
    return "\n".join(
        [
            f"- {datetime.date.today().isoformat()}; {processor_name()} ({llvm.get_host_cpu_name()}), registers of "
            f"{vector_bits()} bits, {os.cpu_count()} cores, {memory:.0f} GiB",
            f"- {platform.system()} {platform.machine()}, {'.'.join(platform.libc_ver())}",
            f"- Python {platform.python_version()}, LLVM {version}, {', '.join(versions)}",
            f"- candidates: {'; '.join(dict.fromkeys(candidates))}",
            f"- C compiler: {_compiler()}, `gcc {' '.join(FLAGS)}`",
            f"- load of the machine when the run began: {os.getloadavg()[0]:.1f}",
        ]
    )


def _installed(name: str) -> bool:
    with suppress(importlib.metadata.PackageNotFoundError):
        return bool(importlib.metadata.version(name))
    return False


def _compiler() -> str:
    try:
        return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return "none"


@contextmanager
def cores(count: int) -> Iterator[None]:
    """Let all threads of this process run on `count` cores only (Linux; elsewhere nothing is done)."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        yield
        return
    allowed = sorted(os.sched_getaffinity(0))

    def pin(wanted: list[int]) -> None:
        for task in tasks.iterdir():
            with suppress(OSError):  # a thread that has just ended
                os.sched_setaffinity(int(task.name), wanted)

    pin(allowed[-count:])
    try:
        yield
    finally:
        pin(allowed)
