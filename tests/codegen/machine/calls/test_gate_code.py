"""The machine code of the gate that comes with symad: LLVM makes the same bytes, and they answer as those made here."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import Kernel, compile_program, program_from_sympy
from codegen.code_memory import MachineCode, MappedCode
from codegen.lanes import FLOAT64
from codegen.machine.calls import gate, gate_code, gate_routines
from codegen.object_files import Placed
from tests.support import kept_machine_code

X, Y = sp.symbols("x y")


def test_llvm_makes_the_same_bytes() -> None:
    assert gate_code.IDENTITY == gate_routines.IDENTITY, "python -m tests.support.kept_machine_code"
    assert (gate_code.MOST_ARRAYS, gate_code.MOST_DIMENSIONS) == (
        gate_routines.MOST_ARRAYS, gate_routines.MOST_DIMENSIONS,
    )  # fmt: skip
    made = kept_machine_code.gate()
    if kept_machine_code.version() == gate_code.LLVM:
        kept = Placed(bytes.fromhex(gate_code.CODE), gate_code.ENTRIES, gate_code.CALLED, gate_code.INSIDE)
        assert made == kept
    assert set(made.called) == set(gate_code.CALLED)


def addresses() -> dict[str, int]:
    return gate._addresses(FLOAT64) | {"table_offset": Kernel.__basicsize__ // 8 + 1}


GATES: dict[str, Callable[[], MachineCode | None]] = {
    "ready": lambda: gate.ready_gate(addresses(), FLOAT64),
    "compiled": lambda: gate.compiled_gate(addresses(), FLOAT64),
}


def through(made: MachineCode, kernel: Kernel) -> Kernel:
    """Give a kernel another gate."""
    entry = "slow" if kernel._table is None else "gate"
    ctypes.c_void_p.from_address(id(kernel) + Kernel.__basicsize__).value = made.addresses[entry]
    return kernel


def answers(kernel: Kernel) -> list[Any]:
    """What every form of call gives, refusals too."""
    x, out = np.array([1.0, 2.0]), (np.zeros(2), np.zeros(()))
    overlapping = np.zeros(3)
    calls: list[Callable[[], Any]] = [
        lambda: kernel(x, 0.5),
        lambda: kernel(x, np.float64(0.25)),
        lambda: kernel(x, np.array(0.25)),
        lambda: kernel([1, 2], 3),
        lambda: kernel(x.astype(np.float32), 0.5),
        lambda: kernel(np.arange(4.0)[::2], 0.5),
        lambda: kernel(x, 0.5, out=out),
        lambda: kernel(x, 0.5, out=list(out)),
        lambda: kernel(overlapping[:2], 0.5, out=(overlapping[1:], out[1])),
        lambda: kernel(x, 0.5, out=out[0]),
        lambda: kernel(x),
        lambda: kernel(x, 0.5, 0.5),
        lambda: kernel(np.zeros(3), 0.5),
        lambda: kernel(x, 0.5, wrong=1),
        lambda: kernel(x, np.inf),
        lambda: kernel(x, s=0.5),
    ]
    found: list[Any] = []
    for call in calls:
        try:
            found.append([np.asarray(value).tolist() for value in call()])
        except Exception as error:
            found.append((type(error), str(error)))
    return found


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("release", [False, True])
def test_every_form_of_call(name: str, release: bool) -> None:
    made = GATES[name]()
    if made is None:
        assert sys.platform != "linux" or not sys.maxsize > 2**32 or "ready" not in name
        return
    total = sp.Symbol("s")
    kernel = compile_program(program_from_sympy([(X, Y), total], [(X + total, Y * total), X + Y + total]))
    assert kernel._table is not None
    expected = answers(kernel)
    assert expected[0] == [[1.5, 1.0], 3.5]
    assert sum(isinstance(found, tuple) for found in expected) == 5
    kernel._table[3] = int(release)
    assert answers(through(made, kernel)) == expected


def test_another_gate_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert gate.ready_gate(addresses(), FLOAT64) is None
    assert not isinstance(gate.gate_library(Kernel.__basicsize__ + 16, FLOAT64), MappedCode)


FIRST = """
import numpy as np
import symad as sa
from codegen import engine
x = np.array([1.0, 2.0])
kernel = sa.compile(sa.hessian(lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2), x, tier="fast", cache=False)
print(kernel(x).tolist(), engine.target_machine.cache_info().currsize, kernel.stats.generator)
"""


def test_a_first_kernel_does_without_llvm() -> None:
    found = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    compiled = "1 LLVM" if gate.ready_gate(addresses(), FLOAT64) is None else "0 "
    assert found.stdout.startswith(f"[[402.0, -400.0], [-400.0, 200.0]] {compiled}")
