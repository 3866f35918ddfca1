"""Kernels as handlers of XLA's foreign function interface, called without Python.

The layout is version 0 of `xla/ffi/api/c_api.h`, which JAX ships: a call frame has arrays of pointers to buffers, and a
buffer its type, its numbers and its extents. A frame with the extension "metadata" asks for the version; XLA refuses
handlers of another major version than 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.program import Declared, Input, Output
from codegen.machine import forms

HANDLER = "XLA_FFI_Error * (XLA_FFI_CallFrame *)"
FLOAT64 = 12  # XLA_FFI_DataType_F64
METADATA = 1  # XLA_FFI_Extension_Metadata
INVALID, EXHAUSTED = 3, 8  # XLA_FFI_Error_Code
# places in XLA_FFI_CallFrame, XLA_FFI_Extension_Base, XLA_FFI_Metadata_Extension, XLA_FFI_Metadata, XLA_FFI_Api
EXTENSION, API, ARGUMENTS, RESULTS = 8, 16, 40, 80
KIND, MADE, MAJOR, MINOR, TRAITS = 8, 24, 24, 28, 32
API_MINOR, CREATE = 36, 48
SIZE, POINTERS = 16, 32  # in XLA_FFI_Args and XLA_FFI_Rets
DTYPE, NUMBERS, RANK, EXTENTS = 16, 24, 32, 40  # in XLA_FFI_Buffer


def handler_text(program: Declared, name: str) -> str:
    """Return the IR of a handler that calls `kernel` with the buffers of a call frame.

    Buffers of other numbers, types or shapes than the program's, and a kernel without memory, are XLA's errors.
    """
    takes = f"{program.name} takes {_told(program.arguments)} and gives {_told(program.outputs)}, all of them float64"
    text = _FunctionLines()
    extension = text.loaded("ptr", "%frame", EXTENSION)
    text.branch(f"icmp eq ptr {extension},null", "run", "extended")
    text.label("extended")
    text.branch(f"icmp eq i32 {text.loaded('i32', extension, KIND)},{METADATA}", "metadata", "run")
    text.label("metadata")
    result = text.loaded("ptr", extension, MADE)
    minor = text.loaded("i32", text.loaded("ptr", "%frame", API), API_MINOR)
    for value, place in (("0", MAJOR), (minor, MINOR), ("0", TRAITS)):
        text.stored("i32", value, result, place)
    text.lines.append("ret ptr null")
    text.label("run")
    inputs = _buffers(text, ARGUMENTS, program.arguments)
    outputs = _buffers(text, RESULTS, program.outputs)
    text.lines += forms.call(inputs, outputs)
    text.branch("icmp eq i32 %status,0", "done", "failed")
    text.label("done")
    text.lines.append("ret ptr null")
    for label, message, code in (
        ("failed", f"{program.name}: there is no memory for what its kernel keeps", EXHAUSTED),
        ("refused", takes, INVALID),
    ):
        text.label(label)
        text.error(f"{name}.{label}", message, code)
    return "\n".join([*text.texts, f"define ptr @{name}(ptr %frame) nounwind {{", *text.lines, "}", ""])


def _told(arrays: Sequence[Input | Output]) -> str:
    return ", ".join(str(tuple(array.shape)) for array in arrays) or "nothing"


def _buffers(text: _FunctionLines, place: int, arrays: Sequence[Input | Output]) -> list[str]:
    """Return pointers to the numbers of buffers, after lines that compare them with the declared ones."""
    text.require(text.loaded("i64", "%frame", place + SIZE), len(arrays))
    buffers = text.loaded("ptr", "%frame", place + POINTERS)
    pointers = []
    for k, array in enumerate(arrays):
        buffer = text.loaded("ptr", buffers, 8 * k)
        text.require(text.loaded("i32", buffer, DTYPE), FLOAT64, "i32")
        text.require(text.loaded("i64", buffer, RANK), len(array.shape))
        extents = text.loaded("ptr", buffer, EXTENTS) if array.shape else ""
        for axis, extent in enumerate(array.shape):
            text.require(text.loaded("i64", extents, 8 * axis), extent)
        pointers.append(text.loaded("ptr", buffer, NUMBERS))
    return pointers


class _FunctionLines:
    """Lines of a function under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.texts: list[str] = []  # constants
        self.names = 0

    def name(self, text: str) -> str:
        self.names += 1
        self.lines.append(f"%v{self.names}={text}")
        return f"%v{self.names}"

    def place(self, base: str, offset: int) -> str:
        return self.name(f"getelementptr i8,ptr {base},i64 {offset}")

    def loaded(self, kind: str, base: str, offset: int) -> str:
        return self.name(f"load {kind},ptr {self.place(base, offset)},align 4")

    def stored(self, kind: str, value: str, base: str, offset: int) -> None:
        self.lines.append(f"store {kind} {value},ptr {self.place(base, offset)},align 4")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def branch(self, test: str, yes: str, no: str) -> None:
        self.lines.append(f"br i1 {self.name(test)},label %{yes},label %{no}")

    def require(self, operand: str, expected: int, kind: str = "i64") -> None:
        """Go on where a number is the expected one."""
        good = f"good{self.names}"
        self.branch(f"icmp eq {kind} {operand},{expected}", good, "refused")
        self.label(good)

    def error(self, constant: str, message: str, code: int) -> None:
        """Return an error that XLA makes."""
        data = message.encode() + b"\0"
        letters = "".join(f"\\{byte:02x}" for byte in data)
        self.texts.append(f'@{constant}=private constant [{len(data)} x i8] c"{letters}"')
        asked = self.name("alloca [32 x i8],align 8")  # XLA_FFI_Error_Create_Args
        for kind, value, place in (("i64", "32", 0), ("ptr", "null", 8), ("ptr", f"@{constant}", 16)):
            self.stored(kind, value, asked, place)
        self.stored("i32", str(code), asked, 24)
        create = self.loaded("ptr", self.loaded("ptr", "%frame", API), CREATE)
        self.lines.append(f"ret ptr {self.name(f'call ptr {create}(ptr {asked})')}")
