"""The engine: invalid IR raises, machine code is freed, addresses are not in the text."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sympy as sp

from codegen import LoweringError, compile_program, engine, program_from_sympy
from codegen.functions.libraries import c_address
from codegen.functions.symbols import symbol

X = sp.Symbol("x")


@pytest.mark.parametrize("text", ["nonsense", "define i32 @f() { ret i32 %x }", "define i32 @f() { ret i64 0 }"])
def test_invalid_ir_raises(text: str) -> None:
    with pytest.raises(LoweringError, match="invalid LLVM IR"):
        engine.compile_text(text, ("f",), {})


def test_missing_symbols_raise() -> None:
    with pytest.raises(LoweringError, match="no_such_function"):
        c_address("no_such_function")
    text = "declare i32 @no_such_function()\ndefine i32 @f() {\n%1=call i32 @no_such_function()\nret i32 %1\n}"
    with pytest.raises(LoweringError, match="link"):
        engine.compile_text(text, ("f",), {})


def test_compile_and_drop_does_not_grow() -> None:
    program = program_from_sympy([X], [sp.sin(X)])
    compile_program(program, tier="fast")  # the first kernel of a process also compiles and drops a trial of the gate
    gc.collect()  # kernels of other tests may wait in cycles: SciPy's LowLevelCallable makes one
    held = len(engine.OPEN)

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    for _ in range(60):
        compile_program(program, tier="fast")
    gc.collect()
    before = pages()
    for _ in range(240):
        compile_program(program, tier="fast")
    gc.collect()
    assert len(engine.OPEN) <= held + 1  # every library was freed by the next one's compilation
    assert pages() - before < 240  # less than a page a kernel


def numbered(k: int) -> engine.Library:
    return engine.compile_text(f"define i32 @f() {{ ret i32 {k} }}", ("f",), {}, 0)


def test_libraries_share_a_linker_until_the_last_is_dropped() -> None:
    made = {k: numbered(k) for k in range(3 * engine.SHARED)}
    linkers = {k: engine.OPEN[library._number][1] for k, library in made.items()}
    assert 3 <= len(set(linkers.values())) <= 4
    full = linkers[engine.SHARED]  # the one that is used now may have been there before
    kept = next(k for k, linker in linkers.items() if linker is full)
    for k in set(made) - {kept}:
        del made[k]
    again = [numbered(k) for k in range(2)]  # what died is freed
    assert not full.jit.closed
    call = ctypes.CFUNCTYPE(ctypes.c_int32)
    assert call(made[kept].addresses["f"])() == kept
    assert [call(library.addresses["f"])() for library in again] == [0, 1]
    del made[kept]
    again.append(numbered(2))
    assert full.jit.closed
    assert [call(library.addresses["f"])() for library in again] == [0, 1, 2]


def test_what_does_not_link_disturbs_no_library_of_the_same_linker() -> None:
    before = numbered(1)
    linker = engine.OPEN[before._number][1]
    text = "declare i32 @no_such_function()\ndefine i32 @f() {\n%1=call i32 @no_such_function()\nret i32 %1\n}"
    with pytest.raises(LoweringError, match="link"):
        engine.compile_text(text, ("f",), {})
    after = numbered(2)
    call = ctypes.CFUNCTYPE(ctypes.c_int32)
    assert [call(library.addresses["f"])() for library in (before, after)] == [1, 2]
    assert engine.OPEN[after._number][1] is not linker
    del before
    numbered(3)
    assert linker.jit.closed or any(other is linker for _, other in engine.OPEN.values())


def test_no_address_stands_in_the_text() -> None:
    kernel = compile_program(program_from_sympy([X], [sp.besselj(2, X) + sp.tanh(X)]))
    assert "inttoptr" not in kernel.llvm
    for address in symbol("scipy.jv.2.0", 2).addresses.values():
        assert str(address) not in kernel.llvm
        assert f"{address:x}" not in kernel.llvm


def test_target_machines_are_shared() -> None:
    assert engine.target_machine(2) is engine.target_machine(2)
    assert engine.target_machine(2) is not engine.target_machine(0)


FORKING = """
import os, threading, time
import llvmlite.binding as llvm
from codegen import engine

busy = threading.Event()
def free_a_context():  # llvmlite does so when its last reference goes, wherever that is
    with llvm.ffi.lib._lock:
        busy.set()
        time.sleep(0.3)
threading.Thread(target=free_a_context).start()
busy.wait()
child = os.fork()
if child == 0:
    engine.compile_object("define i32 @one() { ret i32 1 }")
    os._exit(0)
for _ in range(300):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        raise SystemExit(status)
    time.sleep(0.1)
os.kill(child, 9)
raise SystemExit("the child waits for a thread that it does not have")
"""


COLLECTING = """
import gc, sys, threading, time
import llvmlite.binding as llvm
from codegen import engine

text = "define i32 @one() { ret i32 1 }"

class Node:
    pass

node = Node()
node.itself, node.library = node, engine.compile_text(text, ("one",), {}, 0)
number = max(engine.OPEN)
del node
other = threading.Thread(target=engine.compile_object, args=(text,), daemon=True)
with llvm.ffi.lib._lock:  # as in any call of LLVM, in which the collector may run
    other.start()
    time.sleep(0.3)  # until it has our lock, and waits for that one
    gc.collect()
other.join()
engine.compile_object(text)
assert number not in engine.OPEN
"""


def test_the_collector_waits_for_no_lock_inside_llvm() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECTING], capture_output=True, text=True, check=False, timeout=600)
    assert not done.returncode, done.stderr


def test_a_child_can_compile_when_another_thread_was_inside_llvm() -> None:
    if not hasattr(os, "fork"):
        return
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert not done.returncode, done.stderr


def test_an_interrupt_inside_llvmlite_leaves_its_lock_to_others():
    """Its lock is taken by Python code: Ctrl-C may come when it is taken, and before anything would release it."""
    calls, made = sys.modules["llvmlite.binding.ffi"].lib._lock, []
    text = "define i32 @one() { ret i32 1 }"

    def interrupted(*_: object) -> None:
        calls.__enter__()
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codegen.engine._parsed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.compile_object(text)
    other = threading.Thread(target=lambda: made.append(engine.compile_text(text, ("one",), {}, 0)), daemon=True)
    other.start()
    other.join(60)
    assert made
