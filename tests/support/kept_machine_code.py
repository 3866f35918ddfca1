"""Machine code that comes with symad, for x86-64, as LLVM makes it: `python -m tests.support.kept_machine_code`.

The call gate is written for every processor of that kind, with all addresses in full (LLVM's large code model), so that
it can be copied to any place and the addresses put in. Functions are written for those with fused multiply-adds, of
several numbers also for those that have instructions of AVX-512 for them, and have no addresses in them at all.
"""

from __future__ import annotations

import binascii
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from codegen.emission.lane_functions import lane_function, sine_and_cosine_of_lanes
from codegen.encoding.encode import _functions
from codegen.functions.lane_table import FORMULAS
from codegen.lanes import FLOAT64, SCALAR, Lanes
from codegen.machine.calls import gate_code
from codegen.machine.calls.gate_routines import EXPORTED, IDENTITY, MOST_ARRAYS, MOST_DIMENSIONS, gate_text
from codegen.machine.storage import function_code
from codegen.machine.storage.own_functions import LONG, SHORT, complete, key_of_text
from codegen.object_files import Placed, placed

TRIPLE = "x86_64-unknown-linux-gnu"
WIDTH = 112  # characters of a line
EXTREMA = ("llvm.maximum.f64", "llvm.minimum.f64")
SEVERAL = ("exp", "log", "llvm.sin.f64", "llvm.cos.f64", "pow")  # that come for several numbers too


def machine_code(text: str, features: str, reloc: str, model: str) -> Placed:
    """Compile IR for any x86-64 processor with some features."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(cpu="x86-64", features=features, opt=2, reloc=reloc, codemodel=model)
    return placed([machine.emit_object(module)])


def gate() -> Placed:
    """Compile the gate anew."""
    return machine_code(gate_text(FLOAT64), "", "static", "large")


def texts(lanes: Lanes) -> dict[str, str]:
    """Return the IR of the functions of so many numbers that come with symad."""
    found = [lane_function(name, lanes) for name in (FORMULAS if lanes == SCALAR else SEVERAL)]
    found.append(sine_and_cosine_of_lanes(lanes))
    written = {one[0].name: complete(one[0].name, {each.name: each for each in one}) for one in found}
    names, symbols = _functions({k: (name, lanes.width, (0, 1)) for k, name in enumerate(EXTREMA)}, True, ())
    return written | {name: complete(name, symbols) for name in names.values()}


def functions() -> dict[str, tuple[str, *tuple[bytes, ...]]]:
    """Compile these functions anew; of each, the key of its text, and its code, which begins with it."""
    made: dict[str, tuple[str, *tuple[bytes, ...]]] = {}
    for lanes in (SCALAR, Lanes(2), Lanes(4)):
        for name, text in texts(lanes).items():
            codes = []
            for wanted in (SHORT,) if lanes == SCALAR else (SHORT, LONG):
                code = machine_code(text, ",".join(f"+{each}" for each in wanted), "pic", "small")
                assert (code.called, code.inside, code.entries[name]) == ({}, {}, 0)
                codes.append(code.code)
            made[name] = (key_of_text(text), *codes)
    return made


def version() -> str:
    """Return the version of LLVM."""
    return ".".join(map(str, llvm.llvm_version_info))


def _lines(text: str, indent: str = "    ") -> str:
    return "\n".join(f'{indent}"{text[k : k + WIDTH]}"' for k in range(0, len(text), WIDTH))


HEAD = '''"""{what} for x86-64 under Linux, written by `python -m tests.support.kept_machine_code`.

A test makes {it} anew by the same version of LLVM, and compares the bytes.
"""

LLVM = "{version}"
'''


def gate_module() -> str:
    """Return the text of `gate_code.py`."""
    found = gate()
    return f"""{HEAD.format(what="The call gate", it="it", version=version())}IDENTITY = {IDENTITY!r}
MOST_ARRAYS, MOST_DIMENSIONS = {MOST_ARRAYS}, {MOST_DIMENSIONS}  # that it takes
ENTRIES = { ({name: found.entries[name] for name in EXPORTED})!r}
CALLED = {{  # places of the addresses of what is not in here
{"".join(f"    {name!r}: {places!r},{chr(10)}" for name, places in sorted(found.called.items()))}}}
INSIDE = {{  # places of addresses in the code itself, and how far these are from its beginning
{"".join(f"    {place}: {target},{chr(10)}" for place, target in found.inside.items())}}}
CODE = (
{_lines(found.code.hex())}
)
"""


def function_module() -> str:
    """Return the text of `function_code.py`."""
    each = []
    for name, (key, *codes) in functions().items():
        written = [_lines(binascii.b2a_base64(code, newline=False).decode(), 8 * " ") for code in codes]
        each.append(f'    "{name}": (\n        "{key}",\n' + "".join(f"{text},\n" for text in written) + "    ),\n")
    head = HEAD.format(what="Functions of numbers", it="them", version=version())
    return f"""{head}FUNCTIONS: dict[str, tuple[str, ...]] = {{  # of each, the key of its text, and code in base64
{"".join(each)}}}
"""


if __name__ == "__main__":
    for kept, text in ((gate_code, gate_module()), (function_code, function_module())):
        Path(kept.__file__).write_text(text, encoding="utf-8")
        print(f"{kept.__file__}: written by llvmlite {llvmlite.__version__}")
