"""The C function of a kernel: its name, its parameters, and the header that declares and describes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.dtypes import FLOAT64, NumberType
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.machine.exports.c_names import check_name, parameter_names

LARGEST_ENUM = 2**31 - 1
BITS = (
    "The C source gives the numbers of the other two, to the last bit, when products and sums are not contracted",
    "(-ffp-contract=off) and -ffast-math is not given; -march=native makes fma() one instruction.",
)
LOOPS = (
    "The C source adds up the sums of its loops in the order of their repetitions, the other two several side by side,",
    "with an exp, log, sine... of their own: their numbers may differ in the last bits.",
)


@dataclass(frozen=True)
class Parameter:
    """One array of the C function, of numbers of the C type `scalar`."""

    name: str
    array: Input | Output
    scalar: str

    @property
    def given(self) -> bool:
        """Whether the function reads it."""
        return isinstance(self.array, Input)

    @property
    def declaration(self) -> str:
        """The parameter as the header declares it."""
        return f"{'const ' if self.given else ''}{self.scalar} *{self.name}"


@dataclass(frozen=True)
class Interface:
    """The C function of a program: `int name(const double *input, ..., double *output, ...)`, or float."""

    name: str
    number: NumberType
    program: Program | RolledProgram
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]

    @property
    def scalar(self) -> str:
        """C type of machine numbers."""
        return self.number.scalar

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def prototype(self) -> str:
        """The declaration without semicolon."""
        return f"int {self.name}({', '.join([array.declaration for array in self.parameters]) or 'void'})"

    @property
    def sparse(self) -> list[tuple[Parameter, Output]]:
        """Outputs that are the packed data of a sparse matrix."""
        return [
            (found, output)
            for found, output in zip(self.outputs, self.program.outputs, strict=True)
            if output.pattern is not None
        ]


def interface(program: Program | RolledProgram, name: str | None = None, number: NumberType = FLOAT64) -> Interface:
    """Return the C function of a program; ArgumentError for a name that C does not allow.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> interface(program_from_sympy([x, y], [x * y]), "product").prototype
    'int product(const double *x, const double *y, double *out)'
    """
    checked = check_name(program.name if name is None else name)
    outputs = ["out"] if len(program.outputs) == 1 else [f"out{k}" for k in range(len(program.outputs))]
    arrays: list[Input | Output] = [*program.arguments, *program.outputs]
    names = parameter_names([*(array.name for array in program.arguments), *outputs], (checked,))
    parameters = [Parameter(*pair, number.scalar) for pair in zip(names, arrays, strict=True)]
    split = len(program.arguments)
    return Interface(checked, number, program, tuple(parameters[:split]), tuple(parameters[split:]))


def header(given: Interface, processor: str, source: bool) -> str:
    """Return the header file: what the function takes, gives and promises, and how to build with it (or its source)."""
    name, guard = given.name, f"{given.name}_H_"  # in its case: f.h and F.h may be included both
    sizes = [
        f"{name}_{found.name}_size = {found.array.size}"
        for found in given.parameters
        if found.array.size <= LARGEST_ENUM
    ]
    parts = [
        _comment(
            [
                f"@file {name}.h",
                f"@brief {name}, compiled from {given.program.name}",
                "",
                *_building(name, source, isinstance(given.program, RolledProgram)),
            ]
        ),
        f"#ifndef {guard}\n#define {guard}\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        _comment(_description(given, processor)) + f"{given.prototype};\n",
        _comment(["Sizes of the arrays."]) + f"enum {{ {', '.join(sizes)} }};\n" if sizes else "",
        "#ifdef __cplusplus\n}\n#endif\n",
        "#endif\n",
    ]
    return "\n".join([part for part in parts if part])


def _building(name: str, source: bool, rolled: bool) -> list[str]:
    lines = ["Build with one of:", f"  cc main.c {name}.o -lm", f"  cc main.c -L. -l{name} -lm -Wl,-rpath,."]
    if not source:
        return lines
    return [
        *lines,
        f"  cc -std=c99 -O2 -ffp-contract=off main.c {name}.c -lm",
        *(LOOPS if rolled else BITS),
    ]


def _description(given: Interface, processor: str) -> list[str]:
    width = max((len(found.name) for found in given.parameters), default=0)
    lines = [f"Evaluates {given.program.name}.", ""]
    for found in given.parameters:
        direction = "@param[in] " if found.given else "@param[out]"
        lines.append(f"{direction} {found.name.ljust(width)}  {_array(found)}")
    lines += [
        "@return 0, or 1 when memory for the workspace could not be allocated: then the outputs hold no results",
        "",
        "Threads: it keeps no state and may run in several threads at once.",
        f"Alignment: that of {given.scalar}. Arrays are contiguous, the last index running fastest (C order).",
        "Aliasing: no output may overlap another array; inputs may overlap each other.",
        f"Processor: the object file and the library are compiled for {processor}.",
    ]
    if given.number.parts == 2:
        lines.append("Complex numbers are pairs: real part, imaginary part; the shapes count both.")
    if given.sparse:
        lines.append(f"Sparsity: the places of packed entries are in {given.name}_sparsity.h.")
    return lines


def _array(found: Parameter) -> str:
    array = found.array
    if isinstance(array, Output) and array.pattern is not None:
        pattern = array.pattern
        height, width = pattern.shape
        order = {"csc": "column by column", "regions": "as its loops write them"}.get(pattern.format, "row by row")
        return f"the {pattern.nnz} entries of a sparse {height} x {width} matrix, {order}"
    original = f"{array.name}: " if isinstance(array, Input) and array.name != found.name else ""
    extent = "a scalar" if array.shape == () else f"shape {array.shape}"
    return f"{original}{extent}, {array.size} {found.scalar}{'s' * (array.size != 1)}"


def _comment(lines: Sequence[str]) -> str:
    body = [f" * {_in_comment(line)}".rstrip() for line in lines]
    return "\n".join(["/**", *body, " */", ""])


def _in_comment(text: str) -> str:
    """Return text (the names of arrays may be any) that ends no comment, begins none, and stays on its line.

    >>> _in_comment("a*/b/*c??/" + chr(10))
    'a* /b/ *c? ?/?'
    """
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return re.sub(r"/(?=\*)|\*(?=/)|\?(?=\?)", r"\g<0> ", plain)
