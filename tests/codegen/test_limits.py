"""Limits stop runaway work with a partial report; long code is compiled in modules; better code comes later."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

import codegen.emission.straight
import codegen.limits
import symad as sa
from codegen import ArgumentError
from codegen.emission.emit import Emitted
from codegen.limits import check, limits
from codegen.lowering.passes import prepare
from codegen.machine.kernel_text import plan
from symad.compiling.native import carry_out


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("max_ops", [1000, 10_000, 20_000])
def test_operations_are_limited_with_a_report(max_ops: int) -> None:
    with pytest.raises(
        sa.errors.LimitError, match=rf"more than {max_ops:,} operations: .* so far: [\d,]+ (Mul|Pow|Add)"
    ):
        sa.compile(sa.hessian(rosenbrock, sparse="lower"), np.ones(3000), max_ops=max_ops, roll="never")


def test_inputs_are_no_operations() -> None:
    assert sa.compile(lambda x: x[0] * x[1], np.ones(20_000), max_ops=10)(np.full(20_000, 3.0)) == 9.0


def test_small_programs_are_limited_exactly() -> None:
    with pytest.raises(sa.errors.LimitError, match=r"more than 2 operations: max_ops is 2; so far: 2 Mul, 1 Add"):
        sa.compile(lambda x: x * x * x + 1, 1.0, max_ops=2)
    assert sa.compile(lambda x: x * x * x + 1, 1.0, max_ops=3)(2.0) == 9.0


def test_seconds_are_limited() -> None:
    with pytest.raises(sa.errors.LimitError, match=r"more than 0\.005 s since the start: max_seconds is 0.005"):
        sa.compile(sa.hessian(rosenbrock, sparse="lower"), np.ones(20_000), max_seconds=0.005)


def test_limits_end_with_their_block_and_are_of_one_thread() -> None:
    with limits(max_seconds=1e-9):
        thread = threading.Thread(target=check, args=("elsewhere",))
        thread.start()
        thread.join()
        with pytest.raises(sa.errors.LimitError):
            check("here")
    check("afterwards")


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_ops", 0), ("max_ops", -3), ("max_ops", "10"), ("max_seconds", 0.0), ("max_seconds", float("nan"))],
)
def test_limits_must_be_positive(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"{name}=.*give a positive number"), limits(**{name: value}):
        pass


def test_modules_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=200)
    f = sa.hessian(rosenbrock, sparse="lower")
    planned = sa.plan(f, x, roll="never")
    whole = carry_out(planned, chunk=100)(x)
    monkeypatch.setattr(codegen.emission.straight, "LONGEST", 20_000)
    kernel = carry_out(planned, chunk=100)
    assert len(codegen.emission.straight.modules(_emitted(kernel))) > 3
    np.testing.assert_array_equal(kernel(x), whole)


def test_modules_of_a_sweep_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=12)
    f = sa.hessian(lambda x: np.sum(np.exp(np.outer(x, x))))
    planned = sa.plan(f, x, strategy="sweep")
    whole = carry_out(planned, chunk=50)(x)
    monkeypatch.setattr(codegen.emission.straight, "LONGEST", 5000)
    np.testing.assert_array_equal(carry_out(planned, chunk=50)(x), whole)


def _emitted(kernel: sa.Kernel) -> Emitted:
    return plan(prepare(kernel.program, kernel.options)).emit()


INTERRUPTED = """
import signal
import numpy as np, symad as sa, codegen.emission.straight
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what is in the background without it
codegen.emission.straight.LONGEST = 100_000
f = lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
print("ready", flush=True)
kept = []  # Python loses an interrupt that comes while a kernel is freed
try:
    while True:
        kept.append(sa.compile(sa.hessian(f, sparse="lower"), np.ones(3000)))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("delay", [0.2, 1.0, 2.0])
@pytest.mark.thinned
def test_ctrl_c_comes_through_in_every_stage(delay: float) -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        try:
            assert _answer(process) == "interrupted\n"
        finally:
            process.kill()


def _answer(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C; once more where the first one came while Python freed an object, and was lost there."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=600)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=600)[0]


def test_better_code_comes_later_with_the_same_bits() -> None:
    x = np.random.default_rng(1).normal(size=60)
    kernel = sa.compile(sa.hessian(rosenbrock), x, tier="auto")
    first = kernel(x)
    assert kernel.wait()
    assert kernel.tier == "default"
    np.testing.assert_array_equal(kernel(x), first)
    np.testing.assert_array_equal(kernel(x), sa.compile(sa.hessian(rosenbrock), x)(x))


def test_calls_go_on_while_the_code_is_exchanged() -> None:
    x = np.random.default_rng(1).normal(size=40)
    wanted = sa.compile(sa.grad(rosenbrock), x)(x)
    for _ in range(5):
        kernel = sa.compile(sa.grad(rosenbrock), x, tier="auto")
        while kernel.tier == "fast":
            np.testing.assert_array_equal(kernel(x), wanted)
        np.testing.assert_array_equal(kernel(x), wanted)


def test_structured_kernels_exchange_their_code_too() -> None:
    kernel = sa.compile(lambda p: {"y": np.sin(p["x"])}, {"x": np.ones(3)}, tier="auto")
    first = kernel({"x": np.arange(3.0)})["y"]
    assert kernel.wait()
    np.testing.assert_array_equal(kernel({"x": np.arange(3.0)})["y"], first)


def test_a_dropped_kernel_is_not_compiled_again() -> None:
    reference = weakref.ref(sa.compile(sa.hessian(rosenbrock), np.ones(40), tier="auto"))
    gc.collect()
    assert reference() is None


def test_a_process_that_ends_does_not_wait_for_better_code_of_all_kernels() -> None:
    code = (
        "import numpy as np, symad as sa\n"
        "kernels = [sa.compile(lambda x, k=k: np.sum(np.sin(x) * k), np.ones(300), tier='auto') for k in range(20)]\n"
        "print(kernels[0](np.zeros(300)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.0\n", "")


def test_wait_may_give_up() -> None:
    kernel, go_on = sa.compile(rosenbrock, np.ones(3)), threading.Event()
    assert kernel.wait()  # nothing to wait for
    better = sa.compile(rosenbrock, np.ones(3))

    def compile_again():
        go_on.wait()
        return better._compiled.library

    kernel.improve_later(compile_again)
    assert not kernel.wait(0.01)
    go_on.set()
    assert kernel.wait()
    assert kernel(np.zeros(3)) == 2.0


FORK = """
import os, signal, threading, warnings
import numpy as np, symad as sa
kernel, go_on = sa.compile(lambda x: x @ x, np.ones(3)), threading.Event()
kernel.improve_later(lambda: go_on.wait() and None)
warnings.simplefilter("ignore")  # of a fork beside a thread
child = os.fork()
if not child:
    signal.alarm(60)
    other = sa.compile(lambda x: 2 * x @ x, np.ones(3), tier="auto")
    found = kernel.wait(), kernel(np.ones(3)), other.wait(), other(np.ones(3))
    os._exit(0 if found == (False, 3.0, True, 6.0) else 1)
print(os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_does_not_wait_for_a_thread_that_it_has_not() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def pairs(x):
    return sum((x[i] - x[j]) ** 4 * np.cos(x[i]) for i in range(len(x)) for j in range(i))


def neighbours(x):
    links = np.random.default_rng(0).integers(0, 40, (40, 12))
    return sum(np.sqrt(1 + sum(np.exp(x[i] * x[j]) for j in links[i, : 2 + i % 9])) for i in range(40))


def momentum(x):
    v = 0 * x
    for _ in range(60):
        v = 0.9 * v - 0.01 * np.stack([x[0] * (x[0] ** 2 - x[1]), x[1] - x[0] ** 2])
        x = x + v
    return np.sum(np.sin(x))


def unlike(x):
    return sum(x[k] ** (k % 12) * np.sin(k * x[k]) ** (k % 7) for k in range(40))


class InsideError(Exception):
    """The time was over in a stage, and noticed there."""


STAGES = [
    ("codegen.loops.find.chains", "_Cover.chains", momentum),
    ("codegen.loops.find.find", "ragged_sums", neighbours),
    ("codegen.loops.find.cover", "_Cover.settle", pairs),
    ("codegen.loops.find.cover", "_Cover.reduce", pairs),
    ("codegen.loops.find.cover", "companions", pairs),
    ("codegen.loops.find.find", "fused", pairs),
    ("codegen.loops.find.find", "_settled", pairs),
    ("codegen.loops.find.find", "whole_compositions", pairs),
    ("codegen.loops.roll", "place", pairs),
    ("codegen.loops.place.place_nodes", "_Placer.stages", pairs),
    ("codegen.loops.place.place_nodes", "_Placer.write", pairs),
    ("codegen.loops.place.place_nodes", "_Placer.run", neighbours),
    ("codegen.loops.find.agreement", "_compute_rest", neighbours),
    ("codegen.lowering.passes", "lower", unlike),
    ("codegen.lowering.passes", "simplify", unlike),
    ("codegen.lowering.fuse", "_rewritten", unlike),
]


@pytest.mark.parametrize(("module", "name", "f"), STAGES, ids=[f"{m.rpartition('.')[2]}.{n}" for m, n, _ in STAGES])
def test_a_limit_is_kept_inside_of_a_stage(
    module: str, name: str, f: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands still until the stage is entered; then the time is over, and the stage does not end."""
    *within, name = name.split(".")
    owner = reduce(getattr, within, importlib.import_module(module))
    stage, clock = getattr(owner, name), [0.0]

    def entered(*args: object, **keywords: object) -> None:
        clock[0] = 1e6
        with pytest.raises(sa.errors.LimitError, match="more than 100 s since the start"):
            stage(*args, **keywords)
        raise InsideError

    monkeypatch.setattr(codegen.limits.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(owner, name, entered)
    with pytest.raises(InsideError):
        sa.compile(sa.grad(f), np.linspace(0.5, 1.0, 2 if f is momentum else 40), max_seconds=100)


def test_long_straight_lines_ask_for_the_time_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    for name in ("ir.machine_rows", "lowering.fuse", "emission.schedule", "encoding.encoder"):
        module = importlib.import_module(f"codegen.{name}")
        monkeypatch.setattr(module, "EVERY", 64)
        monkeypatch.setattr(module, "check", lambda doing: asked.update([doing]))
    sa.compile(unlike, np.linspace(0.5, 1.0, 40), roll="never")
    sa.compile(unlike, np.linspace(0.5, 1.0, 40), roll="never", tier="fast")
    assert asked["encoding machine operations"] > 2
    assert asked["writing machine operations"] > 4
    assert asked["rewriting machine operations"] > 4
    assert asked["ordering machine operations"] > 2
