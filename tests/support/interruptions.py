"""Ctrl-C at random moments, in every stage: it comes out as KeyboardInterrupt, and nothing is broken afterwards.

Each try is a process that does one thing again and again. It is sent SIGINT; after each one it computes and compiles
something small, calls the kernels that it had, and looks through its cache; then it goes on. An abort, a signal that
does not come through, a wrong number, or a file of the cache that cannot be read is a failure.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import symad as sa
from codegen.machine.storage.cache import SUFFIX, Cache
from symad.tracing.calling.scope import innermost_scope

ROOT = Path(__file__).parents[2]
INTERRUPTS = 20  # of one process
SHORTEST, LONGEST = 1e-3, 2.0  # seconds until one comes
PATIENCE = 30.0  # seconds until it has to be answered; then it is sent once more
DATA = np.random.default_rng(0).normal(size=(4000, 8))
SMALL = np.array([0.5, -1.5])


def valley(x: Any) -> Any:
    """Something to be differentiated."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def network(w: Any) -> Any:
    """Something on large arrays."""
    return np.sum(np.tanh(DATA @ w.reshape(8, 2)) ** 2)


def pairs(x: Any) -> Any:
    """Loops that are found."""
    return sum(np.exp(-((x[i] - x[j]) ** 2)) for i in range(len(x)) for j in range(i))


class Stages:
    """What is done again and again, and what stays right whatever happens to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, Cache(folder / "cache")
        self.numbers = itertools.count(os.getpid() * 10**6)
        self.points = np.random.default_rng(1).normal(size=(200_000, 2))
        self.long = np.random.default_rng(2).normal(size=500_000)
        self.many = sa.compile(sa.hessian(valley), SMALL)
        self.one, self.shared = (sa.compile(sa.grad(valley), self.long, threads=n) for n in (1, 2))
        self.right = [self.many(SMALL), self.many.batch(self.points[:50]), self.one(self.long)]

    def trace(self) -> None:
        """A trace."""
        sa.trace(valley, np.ones(20_000))

    def numbers_of(self) -> None:
        """A derivative on numbers."""
        sa.hessian(valley)(np.ones(40))

    def differentiate(self) -> None:
        """A trace of a derivative."""
        sa.trace(sa.hessian(pairs, sparse="lower"), np.ones(20))

    def plan(self) -> None:
        """What would be compiled."""
        sa.plan(sa.hessian(pairs), np.ones(40))

    def straight(self) -> None:
        """Straight lines."""
        sa.compile(sa.hessian(valley, sparse="lower"), np.ones(200), roll="never", cache=False)

    def encoded(self) -> None:
        """Straight lines without LLVM."""
        sa.compile(sa.hessian(valley, sparse="lower"), np.ones(200), roll="never", tier="fast", cache=False)

    def loops(self) -> None:
        """Loops that are found, and loops that are written down."""
        sa.compile(sa.grad(network), np.ones(16), cache=False)
        sa.compile(sa.hessian(pairs), np.ones(20), cache=False)

    def later(self) -> None:
        """Better code that comes later."""
        kernel = sa.compile(sa.hessian(pairs), np.ones(8), tier="auto", roll="never", cache=False)
        kernel(np.ones(8))
        kernel.wait()

    def call(self) -> None:
        """Calls."""
        self.one(self.long)

    def call_on_threads(self) -> None:
        """Calls that threads share."""
        self.shared(self.long)

    def batch(self) -> None:
        """A batch of many points, on two threads."""
        self.many.batch(self.points, threads=2)

    def store(self) -> None:
        """Kernels that go into the cache, and come from there."""
        number = float(next(self.numbers))
        for _ in range(2):
            kernel = sa.compile(lambda x: np.sum(np.sin(x) * number), SMALL, cache=self.cache.folder)
            assert np.isclose(kernel(SMALL), np.sum(np.sin(SMALL)) * number)

    def save(self) -> None:
        """Kernels that are saved and loaded."""
        path = self.folder / "kernel.symad"
        self.many.save(path)
        assert np.array_equal(sa.load(path)(SMALL), self.right[0])

    def check(self) -> None:
        """Everything still works."""
        assert innermost_scope() is None, "a scope is open"
        assert np.array_equal(sa.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0])), [3.0, 12.0])
        number = float(next(self.numbers))
        assert np.allclose(sa.compile(sa.grad(lambda x: np.sum(x * x) * number), SMALL)(SMALL), 2 * SMALL * number)
        found = [self.many(SMALL), self.many.batch(self.points[:50], threads=2), self.shared(self.long)]
        assert all(map(np.array_equal, found, self.right)), "a kernel gives other numbers"
        if self.cache.folder.exists():
            for path in self.cache.folder.iterdir():
                assert path.name.endswith(SUFFIX), f"left over: {path.name}"
                assert self.cache.load(path.name.removesuffix(SUFFIX)) is not None, f"damaged: {path.name}"


STAGES = (
    "trace", "numbers_of", "differentiate", "plan", "straight", "encoded", "loops", "later", "call",
    "call_on_threads", "batch", "store", "save",
)  # fmt: skip


def tries(seed: int, interrupts: int = INTERRUPTS) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield tries of so many interrupts each, stage after stage, with seeds from `seed` on."""
    for number in itertools.count(seed):
        stage = STAGES[number % len(STAGES)]
        yield f"{interrupts} interrupts of {stage}, seed {number}", partial(interrupted, stage, number, interrupts)


def interrupted(stage: str, seed: int, interrupts: int) -> str:
    """Interrupt a process; say whether all signals came through at once. AssertionError where something broke."""
    random, answers = Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.support.interruptions", stage, folder]
        errors = Path(folder, "errors")
        with errors.open("wb") as stream, subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream
        ) as process:  # fmt: skip
            try:
                for _ in range(interrupts):
                    answers[_one(process, SHORTEST * (LONGEST / SHORTEST) ** random.random())] += 1
                assert process.stdin is not None
                process.stdin.close()
                assert process.wait(PATIENCE) == 0, f"exit status {process.returncode}"
            except (AssertionError, BrokenPipeError, subprocess.TimeoutExpired) as error:
                process.kill()
                raise AssertionError(f"{error}, after {dict(answers)}: {errors.read_text()[-4000:]}") from error
    return ", ".join(sorted(answers))


def _one(process: subprocess.Popen[bytes], delay: float) -> str:
    """Let the process work, interrupt it, and wait until it has answered."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    _expect(process, "working", 4 * PATIENCE)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    try:
        _expect(process, "interrupted", PATIENCE)
    except TimeoutError:  # Python loses an interrupt that comes while an object is freed
        process.send_signal(signal.SIGINT)
        try:
            _expect(process, "interrupted", PATIENCE)
        except TimeoutError:
            process.send_signal(signal.SIGUSR1)
            time.sleep(1.0)
            raise AssertionError("no answer") from None
        return "lost once"
    return "interrupted"


def _expect(process: subprocess.Popen[bytes], word: str, seconds: float) -> None:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(seconds):
            raise TimeoutError
    found = process.stdout.readline().decode().strip()
    assert found == word, f"{found!r} and not {word!r}, exit status {process.poll()}"


def main() -> None:
    """Do one thing until it is interrupted, look at everything, and again, as long as there are lines to be read."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what is in the background without it
    stage, folder = sys.argv[1:]
    stages = Stages(Path(folder))
    work = getattr(stages, stage)
    work()
    stages.check()
    for _ in sys.stdin:
        try:
            print("working", flush=True)
            while True:
                work()
        except KeyboardInterrupt:
            pass
        stages.check()
        print("interrupted", flush=True)


if __name__ == "__main__":
    main()
