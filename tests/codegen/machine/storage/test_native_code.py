"""Machine code in files of kernels: the same bits without a compiler, and none but this user's own is run."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import symad as sa
from codegen.errors import ArgumentError
from codegen.machine.storage.native_code import program_bytes
from codegen.machine.storage.trust import SIZE, key_file, mark_of, own_key
from codegen.machine.stored_kernels import kernel_in
from codegen.sealed import first_of
from symad.compiling.native import carry_out

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="object files are linked here for x86-64 Linux"
)

POINT = np.linspace(0.1, 0.9, 12)
MATRIX = np.eye(30) * 40 + np.arange(900.0).reshape(30, 30) / 900


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1) ** 2)


KERNELS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "encoded": lambda: (sa.compile(lambda x: x[0] * x[1] - 2, POINT), (POINT,)),
    "encoded with calls": lambda: (sa.compile(lambda x: np.sin(x) * np.exp(x), POINT, tier="fast"), (POINT,)),
    "of several results": lambda: (sa.compile(sa.value_and_grad(rosenbrock), POINT), (POINT,)),
    "by LLVM": lambda: (carry_out(sa.plan(sa.hessian(rosenbrock), POINT), tier="llvm"), (POINT,)),
    "sweep": lambda: (sa.compile(sa.hessian(lambda x: np.prod(np.sin(x) + 2)), POINT), (POINT,)),
    "loops": lambda: (sa.compile(sa.grad(lambda x: np.sum(np.sin(x) * np.exp(x))), np.ones(4000)), (np.ones(4000),)),
    "sparse": lambda: (sa.compile(sa.hessian(rosenbrock, sparse="lower"), np.ones(500)), (np.linspace(0, 1, 500),)),
    "matrices": lambda: (
        sa.compile(sa.grad(lambda a: np.sum(np.linalg.solve(a, np.ones(30)) ** 2)), MATRIX), (MATRIX,)
    ),
    "orders": lambda: (sa.compile(lambda x: np.sort(x) ** 2, np.ones(300)), (np.sin(np.arange(300.0)),)),
    "of SciPy": lambda: (sa.compile(lambda x: np.sum(gammaln(x)), POINT), (POINT,)),
    "vector functions": lambda: (sa.compile(np.tanh, np.ones(64), accuracy="fast"), (np.linspace(0, 2, 64),)),
    "float32": lambda: (sa.compile(lambda x: np.exp(x) / 3, POINT, dtype="float32"), (POINT,)),
    "complex": lambda: (sa.compile(lambda x: x * x + 1, POINT, dtype="complex128"), (POINT + 1j,)),
    "containers": lambda: (sa.compile(lambda p: {"twice": 2 * p["a"]}, {"a": 1.0}), ({"a": 4.0},)),
    "threads": lambda: (sa.compile(lambda x: np.exp(x) * x, np.ones(40_000), threads=2), (np.linspace(0, 1, 40_000),)),
}  # fmt: skip


def bits(result: Any) -> list[bytes]:
    parts = result if isinstance(result, tuple) else result.values() if isinstance(result, dict) else [result]
    return [np.asarray(part).tobytes() for part in parts]


@pytest.mark.parametrize("name", KERNELS)
def test_a_loaded_kernel_has_the_same_bits_and_is_not_compiled(name: str, tmp_path: Path) -> None:
    kernel, point = KERNELS[name]()
    kernel.save(tmp_path / "kernel")
    loaded = sa.load(tmp_path / "kernel")
    assert loaded.stats.cached
    assert bits(loaded(*point)) == bits(kernel(*point))
    assert loaded.signature == kernel.signature
    assert loaded.stats.executed == kernel.stats.executed
    assert loaded.stats.passes == kernel.stats.passes
    assert loaded.stats.regions == kernel.stats.regions
    assert loaded.sparsity == kernel.sparsity
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "kernel").read_bytes()


def test_more_code_of_a_loaded_kernel_is_compiled(tmp_path: Path) -> None:
    kernel = carry_out(sa.plan(sa.hessian(rosenbrock), POINT), tier="llvm")
    kernel.save(tmp_path / "kernel")
    loaded = sa.load(tmp_path / "kernel")
    points = np.random.default_rng(1).normal(size=(50, 12))
    assert loaded.batch(points).tobytes() == kernel.batch(points).tobytes()
    assert loaded.llvm == kernel.llvm
    assert loaded.assembly
    assert repr(loaded) == repr(kernel)
    again = pickle.loads(pickle.dumps(loaded))
    assert again(POINT).tobytes() == kernel(POINT).tobytes()
    out = np.empty((12, 12))
    assert loaded.ctypes(POINT.ctypes, out.ctypes) == 0
    assert out.tobytes() == kernel(POINT).tobytes()


CALLED = """
import sys
import symad as sa
import numpy as np
kernel = sa.load(sys.argv[1])
print(kernel(np.linspace(0.1, 0.9, 12)).tobytes().hex())
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"sympy", "mpmath", "scipy", "llvmlite", "cffi"}))
print(sum(name.partition(".")[0] in ("symad", "codegen") for name in sys.modules))
"""


def test_a_process_that_calls_imports_no_compiler(tmp_path: Path) -> None:
    kernel = sa.compile(sa.hessian(lambda x: np.prod(np.sin(x) + 2)), POINT)
    kernel.save(tmp_path / "kernel")
    line = [sys.executable, "-W", "error", "-c", CALLED, str(tmp_path / "kernel")]
    result, heavy, count = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split("\n")[:3]
    assert bytes.fromhex(result) == kernel(POINT).tobytes()
    assert heavy == ""
    assert (
        int(count) <= 58
    )  # of some six hundred files; the last that came are `deprecation` and `old_names`, until 0.3


@pytest.fixture
def saved(tmp_path: Path) -> bytes:
    sa.compile(lambda x: x + 1.0, 0.0).save(tmp_path / "plus")
    return (tmp_path / "plus").read_bytes()


@pytest.fixture
def wrong(tmp_path: Path) -> bytes:
    sa.compile(lambda x: x + 666.0, 0.0).save(tmp_path / "wrong")
    return (tmp_path / "wrong").read_bytes()


def loaded_from(data: bytes) -> tuple[float, bool]:
    kernel = kernel_in(data, "a file")
    return kernel(1.0), kernel.stats.cached


def test_code_behind_another_program_is_not_run(saved: bytes, wrong: bytes) -> None:
    assert loaded_from(saved) == (2.0, True)
    assert loaded_from(saved[: first_of(saved)] + wrong[first_of(wrong) :]) == (2.0, False)


def test_code_under_the_mark_of_another_user_is_not_run(
    saved: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = saved[:-SIZE] + mark_of(bytes(SIZE), [saved[:-SIZE]])
    assert loaded_from(stranger) == (2.0, False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    with caplog.at_level(logging.INFO, "symad"):
        assert loaded_from(saved) == (2.0, False)
    assert "no key of this user's" in caplog.text
    assert own_key(make=True) not in (None, bytes(SIZE))
    with caplog.at_level(logging.INFO, "symad"):
        assert loaded_from(saved) == (2.0, False)
    assert "it was not made by this user's symad" in caplog.text


def test_code_for_another_machine_is_not_run(
    saved: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("codegen.machine.storage.native_code.here", lambda: {"machine": "x86_64"})
    with caplog.at_level(logging.INFO, "symad"):
        assert loaded_from(saved) == (2.0, False)
    assert "another machine" in caplog.text


@pytest.mark.parametrize("mode", [0o644, 0o620])
def test_a_key_that_others_can_read_or_write_is_none(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    key = own_key(make=True)
    assert key is not None
    assert own_key() == own_key(make=True) == key
    assert key_file().stat().st_mode & 0o777 == 0o600
    key_file().chmod(mode)
    assert own_key() is None
    key_file().chmod(0o600)
    key_file().parent.chmod(0o777)
    assert own_key() is None
    key_file().parent.chmod(0o700)
    assert own_key() == key
    key_file().write_bytes(b"short")
    assert own_key() is None


def test_without_a_key_a_program_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("no folder")
    kernel = sa.compile(lambda x: x + 1.0, 0.0)
    kernel.save(tmp_path / "kernel", code=False)
    assert (tmp_path / "kernel").read_bytes() == kernel.portable()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    kernel.save(tmp_path / "kernel")
    assert (tmp_path / "kernel").read_bytes() == kernel.portable()
    assert sa.load(tmp_path / "kernel")(1.0) == 2.0


def test_every_damaged_byte_is_seen(saved: bytes) -> None:
    for place in range(0, len(saved), 7):
        damaged = bytearray(saved)
        damaged[place] ^= 0x10
        try:
            found = loaded_from(bytes(damaged))
        except ArgumentError:
            continue
        assert found == (2.0, False), place


def test_what_is_behind_a_program_is_code_or_refused(saved: bytes) -> None:
    program = saved[: first_of(saved)]
    assert program_bytes(saved, "a file") == program_bytes(program, "a file") == program
    for behind in (b"x", bytes(100), saved[len(program) : -SIZE], saved[len(program) :] + b"x", program):
        with pytest.raises(ArgumentError, match="no file that can be loaded"):
            kernel_in(program + behind, "a file")


def test_limits_caches_and_dumps_compile(saved: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernel").write_bytes(saved)
    assert sa.load(tmp_path / "kernel").stats.cached
    assert not sa.load(tmp_path / "kernel", max_ops=10).stats.cached
    assert not sa.load(tmp_path / "kernel", cache=tmp_path / "cache").stats.cached
    monkeypatch.setenv("SYMAD_DUMP", str(tmp_path / "dump"))
    assert not sa.load(tmp_path / "kernel").stats.cached


def test_what_is_compiled_in_the_background_is_saved_as_a_program(tmp_path: Path) -> None:
    kernel = sa.compile(lambda x: x + 1.0, 0.0, tier="auto")
    kernel.save(tmp_path / "kernel")
    assert (tmp_path / "kernel").read_bytes() == kernel.portable()
