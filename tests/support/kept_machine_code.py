"""Machine code that comes with symad, for x86-64, as LLVM makes it: `python -m tests.support.kept_machine_code`.

The call gate is written for every processor of that kind, with all addresses in full (LLVM's large code model), so that
it can be copied to any place and the addresses put in. Functions of one number are written for those with fused
multiply-adds, and have no addresses in them at all.
"""

from __future__ import annotations

import binascii
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from codegen.emission.lane_functions import lane_function, sine_and_cosine_of_lanes
from codegen.functions.lane_table import FORMULAS
from codegen.lanes import FLOAT64, SCALAR
from codegen.machine.calls import gate_code
from codegen.machine.calls.gate_routines import EXPORTED, IDENTITY, MOST_ARRAYS, MOST_DIMENSIONS, gate_text
from codegen.machine.storage import function_code
from codegen.machine.storage.own_functions import WANTED, complete, key_of_text
from codegen.object_files import Placed, placed

TRIPLE = "x86_64-unknown-linux-gnu"
WIDTH = 112  # characters of a line
PROCESSOR = ",".join(f"+{name}" for name in WANTED)


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


def texts() -> dict[str, str]:
    """Return the IR of all functions of one number that have a formula."""
    found = [lane_function(name, SCALAR) for name in FORMULAS] + [sine_and_cosine_of_lanes(SCALAR)]
    return {one[0].name: complete(one[0].name, {each.name: each for each in one}) for one in found}


def functions() -> dict[str, tuple[str, bytes]]:
    """Compile these functions anew; of each, the key of its text, and its code, which begins with it."""
    made = {name: machine_code(text, PROCESSOR, "pic", "small") for name, text in texts().items()}
    assert not any(code.called or code.inside or code.entries[name] for name, code in made.items())
    return {name: (key_of_text(text), made[name].code) for name, text in texts().items()}


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
    for name, (key, code) in functions().items():
        text = binascii.b2a_base64(code, newline=False).decode()
        each.append(f'    "{name}": (\n        "{key}",\n{_lines(text, 8 * " ")}\n    ),\n')
    head = HEAD.format(what="Functions of one number", it="them", version=version())
    return f"""{head}FUNCTIONS = {{  # of each, the key of its text, and its code in base64, which begins with it
{"".join(each)}}}
"""


if __name__ == "__main__":
    for kept, text in ((gate_code, gate_module()), (function_code, function_module())):
        Path(kept.__file__).write_text(text, encoding="utf-8")
        print(f"{kept.__file__}: written by llvmlite {llvmlite.__version__}")
