"""The other end of a worker: start it under limits of time and memory, ask it for bursts, read its entries."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.limited import STARTING, failure
from benchmarks.structure.entries import Entries

ROOT = Path(__file__).parents[2]
LONGEST_BURST = 120.0
PATIENCE = 10  # times the limit of processor time: others may be using the machine


class NoResultError(Exception):
    """Why a candidate has no numbers on a row."""


class Remote:
    """A candidate on a row, built in a process of its own that waits for requests."""

    def __init__(self, candidate: str, row: str, seconds: float, gigabytes: float) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.errors = Path(self.folder.name) / "entries.npz", Path(self.folder.name) / "errors"
        self.gigabytes = gigabytes
        limits = f"{seconds:g}", f"{gigabytes:g}", str(self.path)
        command = [sys.executable, "-m", "benchmarks.structure.worker", candidate, row, *limits]
        pipe = subprocess.PIPE
        with self.errors.open("w") as errors:
            self.child = subprocess.Popen(
                command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors, text=True, start_new_session=True
            )
        try:
            self.found: dict[str, Any] = self._line(PATIENCE * (seconds + STARTING), f"build > {seconds:.0f} s")
        except NoResultError:
            self.close()
            raise

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def burst(self) -> float:
        """Return the seconds of one call, from a burst of them."""
        assert self.child.stdin is not None
        self.child.stdin.write("burst\n")
        self.child.stdin.flush()
        return float(self._line(LONGEST_BURST, "a call takes minutes"))

    def entries(self) -> list[Entries]:
        """Return the entries at each point of the row."""
        with np.load(self.path) as kept:
            return [Entries(kept[f"places{k}"], kept[f"values{k}"]) for k in range(len(kept.files) // 2)]

    def close(self) -> None:
        """End the process, with the compilers that it has started."""
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.communicate()
        self.folder.cleanup()

    def _line(self, seconds: float, late: str) -> Any:
        output = self.child.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], seconds)
        if not ready:
            raise NoResultError(late)
        if line := output.readline():
            return json.loads(line)
        status, errors = self.child.wait(), self.errors.read_text()
        exceeded = status == -signal.SIGXCPU or "SIGXCPU" in errors or "CPU time limit" in errors
        raise NoResultError(late if exceeded else failure(errors, status, self.gigabytes))
