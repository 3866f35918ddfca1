"""Environments: the same kernels in processes of many kinds have the same bits, text and structure.

Each try starts Python anew with other options, variables and folders, and compares what `SCRIPT` prints with what a
plain process prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import hashlib, sys
import numpy as np
import symad as sa

def energy(x):
    pairs = [((x[i] - x[j]) ** 2 + 0.1) for i in range(5) for j in range(i)]
    return sum(np.exp(-p) / p for p in pairs) + (x[0] if x[1] > 0 else np.sin(x[0]))

x = np.linspace(-1.0, 1.0, 5)
results = [sa.grad(energy)(x), sa.hessian(energy)(x)]
for options in ({}, {"roll": "never"}, {"accuracy": "fast"}, {"tier": "fast"}):
    kernel = sa.compile(sa.hessian(energy), x, **options)
    results.append(kernel(x))
    results.append(kernel.batch(np.stack([x] * 9)))
rosenbrock = lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
kernel = sa.compile(sa.hessian(rosenbrock, sparse="lower"), np.ones(300))
results.append(kernel(np.linspace(0, 1, 300)).data)
digest = hashlib.sha256(b"".join(np.ascontiguousarray(r).tobytes() for r in results))
digest.update(str(sa.trace(sa.grad(energy), x).let()).encode())
digest.update(sa.plan(sa.hessian(energy), x).text(100).encode())
digest.update(sa.expand("x^3 sin(x)", "x", ["v", "w"]).html().encode())
digest.update(kernel.llvm.encode())
if sys.stdout is not None:
    print(digest.hexdigest())
"""
SEEDS = range(21)


def _run(options: Sequence[str], cwd: Path = ROOT, **variables: str | None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    kept = {name: value for name, value in environment.items() if value is not None}
    command = [sys.executable, *options, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, cwd=cwd, env=kept, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    assert not done.stderr, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode().strip()


@cache
def _plain() -> str:
    return _run(["-W", "error"])


def _same(options: list[str], variables: dict[str, str | None]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        filled = {name: value and value.replace("FOLDER", folder) for name, value in variables.items()}
        if filled.pop("READONLY", None):
            Path(folder).chmod(0o500)
        found = _run(options, Path("/"), **filled)
    assert found == _plain(), "other bits or text than in a plain process"
    return "same"


def _closed() -> str:
    command = 'exec "$0" -W error -c "$1" <&- >&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, SCRIPT], stderr=subprocess.PIPE, cwd=ROOT, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return "ended"


def _another_user() -> str:
    """As a user who owns nothing, with no home."""
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    options = {"cwd": "/", "env": {"PYTHONPATH": str(ROOT)}, "user": 65534}
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=300, **options)
    except PermissionError:
        return "not tried: another user may not read this Python"
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    assert done.stdout.decode().strip() == _plain()
    return "same"


NAMED: dict[str, Callable[[], str]] = {
    "-O": partial(_same, ["-O"], {}),
    "-OO": partial(_same, ["-OO"], {}),
    "-W error": partial(_same, ["-W", "error"], {}),
    "-X dev": partial(_same, ["-X", "dev", "-W", "error::ResourceWarning"], {}),
    "-X utf8=0": partial(_same, ["-X", "utf8=0"], {}),
    "LANG=C": partial(_same, [], {"LANG": "C", "LC_ALL": "C"}),
    "LC_ALL=tr_TR": partial(_same, [], {"LC_ALL": "tr_TR.UTF-8"}),
    "no HOME": partial(_same, [], {"HOME": None}),
    "HOME that is not there": partial(_same, [], {"HOME": "FOLDER/none"}),
    "HOME that cannot be written": partial(_same, [], {"HOME": "FOLDER", "READONLY": "1"}),
    "not strict": partial(_same, [], {"SYMAD_STRICT": "0"}),
    "with the cache": partial(_same, [], {"SYMAD_CACHE": "FOLDER/cache"}),
    "no PATH": partial(_same, [], {"PATH": ""}),
    "another TMPDIR": partial(_same, [], {"TMPDIR": "FOLDER"}),
    "all at once": partial(_same, ["-OO"], {"PYTHONHASHSEED": "77", "HOME": "FOLDER", "READONLY": "1", "LC_ALL": "C"}),
    "closed input and output": _closed,
    **{f"PYTHONHASHSEED={seed}": partial(_same, [], {"PYTHONHASHSEED": str(seed)}) for seed in SEEDS},
}
if hasattr(os, "geteuid") and os.geteuid() == 0:
    NAMED["another user"] = _another_user


def tries(seed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the environments, each once; the seed changes nothing."""
    yield from NAMED.items()
