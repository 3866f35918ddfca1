"""The progress line of commands that take longer than a second."""

from __future__ import annotations

import threading
from time import monotonic
from types import TracebackType
from typing import Self, TextIO

FIRST, AGAIN = 1.0, 0.2  # seconds before the first line, and between two


class Progress:
    """A line that is rewritten on a terminal and removed at the end. Elsewhere it writes nothing.

    What can be counted is counted by `progress(done, whole)`, and the time to go follows; `stage` names what is done.

    >>> import io
    >>> with Progress("verify", 300.0, io.StringIO()) as progress:  # which is no terminal
    ...     progress(250, 1000)
    ...     print(progress.line(4.0))
    symad verify: 250 of 1000, 4 s, 12 s to go
    """

    def __init__(self, command: str, most: float, stream: TextIO, *, shown: bool = True) -> None:
        self.command, self.most, self.stream, self.shown = command, most, stream, shown
        self._stage, self._done, self._whole = "", 0, 0
        self._started: float = monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.shown and self.stream.isatty():
            self._thread = threading.Thread(target=self._write, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def __call__(self, done: int, whole: int) -> None:
        """Say how much is done, of how much."""
        self._done, self._whole = done, whole

    def stage(self, name: str) -> None:
        """Show the current stage."""
        self._stage, self._done, self._whole = name, 0, 0

    def end(self) -> None:
        """Take the line away: a result is printed next."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def line(self, seconds: float) -> str:
        """Return the progress line after some seconds.

        >>> import sys
        >>> Progress("hessian", 300.0, sys.stderr).line(61.0)
        'symad hessian: 61 s, 239 s at most to go'
        """
        told = [self._stage] if self._stage else []
        if self._whole:
            told.append(f"{self._done} of {self._whole}")
        told.append(f"{seconds:.0f} s")
        if 0 < self._done <= self._whole:
            told.append(f"{seconds * (self._whole - self._done) / self._done:.0f} s to go")
        else:
            told.append(f"{max(self.most - seconds, 0.0):.0f} s at most to go")
        return f"symad {self.command}: {', '.join(told)}"

    def _write(self) -> None:
        if self._ended.wait(FIRST):
            return
        while not self._ended.is_set():
            self.stream.write(f"\r\x1b[K{self.line(monotonic() - self._started)}")
            self.stream.flush()
            self._ended.wait(AGAIN)
        self.stream.write("\r\x1b[K")
        self.stream.flush()
