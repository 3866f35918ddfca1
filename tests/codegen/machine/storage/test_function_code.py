"""Machine code of functions that comes with symad: the bytes that LLVM makes, the numbers of code that is made here."""

from __future__ import annotations

import binascii
import ctypes
import platform

import numpy as np
import pytest

from codegen.emission.lane_functions import pair_of
from codegen.engine import compile_text
from codegen.lanes import SCALAR, Lanes
from codegen.machine.storage import function_code, own_functions
from codegen.machine.storage.own_functions import SHORT, ready
from codegen.processor import features, is_x86_64_linux
from tests.support import kept_machine_code

TEXTS = {lanes: kept_machine_code.texts(lanes) for lanes in (SCALAR, Lanes(2), Lanes(4))}
runs_here = pytest.mark.skipif(
    not is_x86_64_linux() or not features().issuperset(SHORT), reason="x86-64 with multiply-adds under Linux"
)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 2.3e-308, 1.7e308, -1e22, np.inf, -np.inf, np.nan, 709.9, -745.2, 0.5, 3.0]
LOOP = """
{declared}
define void @loop(ptr %p,ptr %q,ptr %r0,ptr %r1,i64 %n) {{
begin:
 br label %next
next:
 %i=phi i64 [0,%begin],[%after,%next]
 %a=getelementptr {lanes},ptr %p,i64 %i
 %b=getelementptr {lanes},ptr %q,i64 %i
 %x=load {lanes},ptr %a,align 8
 %y=load {lanes},ptr %b,align 8
 %found=call {kind} @{name}({operands})
 {stores}
 %after=add i64 %i,1
 %more=icmp ult i64 %after,%n
 br i1 %more,label %next,label %end
end:
 ret void
}}
"""


def test_llvm_makes_the_same_bytes() -> None:
    made = kept_machine_code.functions()
    kept = {name: (key, *map(binascii.a2b_base64, codes)) for name, (key, *codes) in function_code.FUNCTIONS.items()}
    asked = "python -m tests.support.kept_machine_code"
    assert {name: found[0] for name, found in made.items()} == {name: found[0] for name, found in kept.items()}, asked
    assert kept_machine_code.version() != function_code.LLVM or made == kept, asked


def points() -> np.ndarray:
    """Return numbers of all sizes, and special ones."""
    random = np.random.default_rng(0)
    sizes = random.choice([-1.0, 1.0], 2000) * np.exp2(random.uniform(-1074, 1023, 2000))
    return np.concatenate([SPECIAL, sizes, random.uniform(-40, 40, 4000), random.uniform(-1, 1, 2000)])


def at_all(name: str, text: str, lanes: Lanes, addresses: dict[str, int]) -> bytes:
    """Return what a function, defined in a text or at an address, makes of all points."""
    both, operands = "sincos" in name, text.partition(")")[0].count(f"{lanes.type} %")
    kind = pair_of(lanes) if both else lanes.type
    declared = f"declare {kind} @{name}({','.join([lanes.type] * operands)})" if addresses else text
    parts = [f"%part{k}=extractvalue {kind} %found,{k}" for k in range(2)] if both else []
    values = ["%part0", "%part1"] if both else ["%found"]
    places = [f"%place{k}=getelementptr {lanes.type},ptr %r{k},i64 %i" for k in range(len(values))]
    stores = [f"store {lanes.type} {value},ptr %place{k},align 8" for k, value in enumerate(values)]
    loop = LOOP.format(
        declared=declared, kind=kind, name=name, lanes=lanes.type, stores="\n".join([*parts, *places, *stores]),
        operands=",".join(f"{lanes.type} {operand}" for operand in ("%x", "%y")[:operands]),
    )  # fmt: skip
    library = compile_text(loop, ("loop",), addresses)
    first, results = points(), np.zeros((2, points().size))
    second = np.random.default_rng(1).permutation(first)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(library.addresses["loop"])
    arrays = (first, second, *results)
    function(*[array.ctypes.data for array in arrays], first.size // lanes.width)
    return results.tobytes()


@runs_here
@pytest.mark.parametrize(("lanes", "name"), [(lanes, name) for lanes, texts in TEXTS.items() for name in texts])
def test_numbers_are_those_of_code_that_is_made_here(lanes: Lanes, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS[lanes][name]
    expected = at_all(name, text, lanes, {})
    for found in (features(), frozenset(SHORT)):
        monkeypatch.setattr(own_functions, "features", lambda found=found: found)
        kept = ready(name, text)
        assert kept is not None
        assert at_all(name, text, lanes, kept.addresses) == expected


def test_other_functions_and_machines_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = next(iter(TEXTS[SCALAR].items()))
    assert ready(name, text + "\n") is None
    assert ready("symad.expm1.v4f64", text) is None
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert ready(name, text) is None
