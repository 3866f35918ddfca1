"""The C function of a kernel: name, parameters, and header.

The entry in plain C convention is IR: `int entry(const double *, ..., double *, ...)` makes the two tables of pointers
that a kernel takes, and calls the kernel.

Without fused multiply-add (`cpu="generic"`) each is a call of `fma`, and a function such as `exp` has some twenty. So
each function has a second version for x86-64 processors with AVX2 and FMA; the kernel's own name is a function that
asks the processor at its first call, and selects one. Both give the same bits.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence

from codegen.errors import ArgumentError
from codegen.ir.program import Declared, Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.lanes import FLOAT64, NumberType
from codegen.records import dataclass

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
alignas alignof bool constexpr false nullptr static_assert thread_local true typeof asm
and and_eq bitand bitor catch char8_t char16_t char32_t class compl concept const_cast consteval constinit
co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not
not_eq operator or or_eq private protected public reinterpret_cast requires static_cast template this throw try
typeid typename using virtual wchar_t xor xor_eq
"""
_UNARY = """
acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 log1p
log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc
"""
_BINARY = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_OTHERS = """
main malloc free memset memcmp printf isnan isunordered signbit NAN INFINITY NULL EOF errno assert stdin stdout stderr
linux unix i386 I
"""  # functions that are used, and macros

KEYWORDS = frozenset(_KEYWORDS.split())  # of C and of C++, whose compilers read the header too
MATH = {**dict.fromkeys(_UNARY.split(), 1), **dict.fromkeys(_BINARY.split(), 2), "fma": 3}  # in C99's math.h: arity
BESSEL = frozenset({"j0", "j1", "y0", "y1"})  # X/Open's addition to math.h
TAKEN = frozenset({*MATH, *BESSEL, *_OTHERS.split()})
MACRO = re.compile(  # of the headers that are included, and of those that go with them
    r"(?:M|DBL|FLT|LDBL|FP|HUGE|MATH|EXIT|SEEK|L|P)_\w+|\w+_(?:MAX|MIN|BIT|DIG|ENDIAN)|BUFSIZ|MAXFLOAT|complex"
    r"|math_errhandling"
)
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_name(name: str) -> str:
    """Return a name that can be that of a C function; ArgumentError for any other.

    >>> check_name("energy_hessian")
    'energy_hessian'
    """
    why = (
        "it is no identifier of C (letters, digits and _, a letter first)"
        if not IDENTIFIER.fullmatch(name)
        else "it is a keyword of C or C++"
        if name in KEYWORDS
        else "the C library has a function or a macro of this name"
        if name in TAKEN or MACRO.fullmatch(name) or _in_process(name)
        else "a file of another name ends so"
        if name.endswith(("_test", "_sparsity"))
        else ""
    )
    if why:
        raise ArgumentError(f"{name!r} as name of a C function", why=why, do='give another: name="..."')
    return name


def _in_process(name: str) -> bool:
    """Whether a library of this process has a function of this name, which an exported one would replace."""
    try:
        return hasattr(ctypes.CDLL(None), name)
    except (OSError, TypeError):  # Windows
        return False


def parameter_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return different C names that resemble the given ones; none ends with _, as names inside of the functions do.

    >>> parameter_names(["x", "p['w'][0]", "x", "int", "M_PI"])
    ['x', 'p_w_0', 'x_2', 'int_value', 'M_PI_value']
    """
    reserved = {*KEYWORDS, *TAKEN, *taken}
    used: set[str] = set()
    unique_names = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "x"
        plain = plain if plain[0].isalpha() else f"x{plain}"
        plain = f"{plain}_value" if plain in reserved or MACRO.fullmatch(plain) else plain
        unique, number = plain, 2
        while unique in used:
            unique, number = f"{plain}_{number}", number + 1
        used.add(unique)
        unique_names.append(unique)
    return unique_names


DEFINED = re.compile(r"^(?:define .*?|)@([\w.$-]+) ?[(=]", re.MULTILINE)


def entry(program: Declared, name: str, kernel: str = "kernel") -> str:
    """Return the IR of a function with one pointer for each array, inputs first, which calls `kernel`.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> entry(program_from_sympy([x], [x + 1]), "f").splitlines()[0]
    'define i32 @f(ptr %i0,ptr %o0) nounwind {'
    """
    tables = {"i": len(program.arguments), "o": len(program.outputs)}
    parameters = ",".join(f"ptr %{letter}{k}" for letter, count in tables.items() for k in range(count))
    lines = [f"define i32 @{name}({parameters}) nounwind {{"]
    for letter, count in tables.items():
        lines.append(f"%{letter}=alloca [{max(count, 1)} x ptr],align 8")
        for k in range(count):
            lines.append(f"%{letter}{k}.at=getelementptr ptr,ptr %{letter},i64 {k}")
            lines.append(f"store ptr %{letter}{k},ptr %{letter}{k}.at,align 8")
    return "\n".join([*lines, f"%status=call i32 @{kernel}(ptr %i,ptr %o)", "ret i32 %status", "}", ""])


def exported(text: str, program: Program | RolledProgram, name: str) -> str:
    """Return the IR text of a kernel whose only visible symbol is the function `name` in plain convention."""
    hidden = re.sub(r"^define (?!internal )", "define internal ", text, flags=re.MULTILINE)
    defined = set(DEFINED.findall(hidden))
    kernel = "kernel"
    if name in defined:
        hidden = re.sub(r"@([\w.$-]+)", lambda match: f"@{match[1]}{'.hidden' * (match[1] in defined)}", hidden)
        kernel = "kernel.hidden"
    return hidden + entry(program, name, kernel)


FEATURES = '"target-features"="+avx2,+fma"'
DEFINITION = re.compile(r"^define [^\n]*?@([\w.$-]+)\([^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"@([\w.$-]+)")
DISPATCH = """@KERNEL.level=internal global i32 0
define i32 @KERNEL(ptr noalias %in,ptr noalias %out) nounwind {
start:
%known=load atomic i32,ptr @KERNEL.level monotonic,align 4
%is_known=icmp ne i32 %known,0
br i1 %is_known,label %choose,label %ask
ask:
%asked=call i32 @KERNEL.asked()
store atomic i32 %asked,ptr @KERNEL.level monotonic,align 4
br label %choose
choose:
%level=phi i32 [%known,%start],[%asked,%ask]
%modern=icmp eq i32 %level,2
br i1 %modern,label %wide,label %baseline
wide:
%first=call i32 @KERNEL.avx2(ptr %in,ptr %out)
ret i32 %first
baseline:
%second=call i32 @KERNEL.baseline(ptr %in,ptr %out)
ret i32 %second
}
"""
# Bits: FMA 12 and AVX 28 of the processor, 27 where the system tells what it saves, there vectors 1 and 2; AVX2 is 5.
ASKED = """define internal i32 @KERNEL.asked() noinline nounwind {
%zero=call {i32,i32,i32,i32} asm sideeffect "cpuid","={ax},={bx},={cx},={dx},0,2"(i32 0,i32 0)
%highest=extractvalue {i32,i32,i32,i32} %zero,0
%enough=icmp uge i32 %highest,7
br i1 %enough,label %basic,label %no
basic:
%one=call {i32,i32,i32,i32} asm sideeffect "cpuid","={ax},={bx},={cx},={dx},0,2"(i32 1,i32 0)
%named=extractvalue {i32,i32,i32,i32} %one,2
%wanted=and i32 %named,402657280
%has=icmp eq i32 %wanted,402657280
br i1 %has,label %saved,label %no
saved:
%states=call {i32,i32} asm sideeffect "xgetbv","={ax},={dx},{cx}"(i32 0)
%enabled=extractvalue {i32,i32} %states,0
%vectors=and i32 %enabled,6
%kept=icmp eq i32 %vectors,6
br i1 %kept,label %more,label %no
more:
%seven=call {i32,i32,i32,i32} asm sideeffect "cpuid","={ax},={bx},={cx},={dx},0,2"(i32 7,i32 0)
%extended=extractvalue {i32,i32,i32,i32} %seven,1
%avx2=and i32 %extended,32
%last=icmp eq i32 %avx2,32
br i1 %last,label %yes,label %no
yes:
ret i32 2
no:
ret i32 1
}
"""


def in_two_versions(text: str, asked: str = ASKED) -> str:
    """Return IR whose function `kernel` calls the version of itself, and of all that it calls, for this processor.

    >>> plain = "define i32 @kernel(ptr %in,ptr %out) nounwind {\\nret i32 0\\n}\\n"
    >>> print(in_two_versions(plain, asked="define i32 @KERNEL.asked() {\\nret i32 2\\n}\\n")[:137])
    define internal i32 @kernel.baseline(ptr %in,ptr %out) nounwind {
    ret i32 0
    }
    define internal i32 @kernel.avx2(ptr %in,ptr %out) nounwind
    """
    definitions = [(match[1], match[0]) for match in DEFINITION.finditer(text)]
    defined = {name for name, _ in definitions}
    rest = DEFINITION.sub("", text)

    def version(body: str, suffix: str, attribute: str) -> str:
        named = NAME.sub(lambda name: f"@{name[1]}.{suffix}" if name[1] in defined else name[0], body)
        head, brace, lines = named.partition("{\n")
        return f"{re.sub('^define (?!internal )', 'define internal ', head)}{attribute}{brace}{lines}"

    copies = [version(body, "baseline", "") for _, body in definitions]
    copies += [version(body, "avx2", f"{FEATURES} ") for _, body in definitions]
    return "".join([*copies, (DISPATCH + asked).replace("KERNEL", "kernel"), rest])


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
    def is_input(self) -> bool:
        """Whether the function reads it."""
        return isinstance(self.array, Input)

    @property
    def declaration(self) -> str:
        """The parameter as the header declares it."""
        return f"{'const ' if self.is_input else ''}{self.scalar} *{self.name}"


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
            (parameter, output)
            for parameter, output in zip(self.outputs, self.program.outputs, strict=True)
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


def header(api: Interface, processor: str, source: bool) -> str:
    """Return the header file: what the function takes, gives and promises, and how to build with it (or its source)."""
    name = api.name
    sizes = [
        f"{name}_{parameter.name}_size = {parameter.array.size}"
        for parameter in api.parameters
        if parameter.array.size <= LARGEST_ENUM
    ]
    about = [f"@file {name}.h", f"@brief {name}, compiled from {api.program.name}", ""]
    about += _building(name, source, isinstance(api.program, RolledProgram))
    parts = [_comment(_description(api, processor)) + f"{api.prototype};\n"]
    parts += [_comment(["Sizes of the arrays."]) + f"enum {{ {', '.join(sizes)} }};\n"] if sizes else []
    return guarded(name, _comment(about) + "\n", "\n" + "\n".join(parts))


def guarded(name: str, about: str, declarations: str, before: str = "") -> str:
    """Return a header for C and C++: a comment, lines that belong before all declarations, and these.

    >>> guarded("f", "", "int f(void);").splitlines()[:2]
    ['#ifndef f_H_', '#define f_H_']
    """
    guard = f"{name}_H_"  # in its case: f.h and F.h may be included both
    opened = f'#ifndef {guard}\n#define {guard}\n{before}\n#ifdef __cplusplus\nextern "C" {{\n#endif\n'
    return f"{about}{opened}{declarations}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"


def _building(name: str, source: bool, rolled: bool) -> list[str]:
    lines = ["Build with one of:", f"  cc main.c {name}.o -lm", f"  cc main.c -L. -l{name} -lm -Wl,-rpath,."]
    if not source:
        return lines
    return [*lines, f"  cc -std=c99 -O2 -ffp-contract=off main.c {name}.c -lm", *(LOOPS if rolled else BITS)]


def _description(api: Interface, processor: str) -> list[str]:
    width = max((len(parameter.name) for parameter in api.parameters), default=0)
    lines = [f"Evaluates {api.program.name}.", ""]
    for parameter in api.parameters:
        direction = "@param[in] " if parameter.is_input else "@param[out]"
        lines.append(f"{direction} {parameter.name.ljust(width)}  {_array(parameter)}")
    lines += [
        "@return 0, or 1 when memory for the workspace could not be allocated: then the outputs hold no results",
        "",
        "Threads: it keeps no state and may run in several threads at once.",
        f"Alignment: that of {api.scalar}. Arrays are contiguous, the last index running fastest (C order).",
        "Aliasing: no output may overlap another array; inputs may overlap each other.",
        f"Processor: the object file and the library are compiled for {processor}.",
    ]
    if api.number.parts == 2:
        lines.append("Complex numbers are pairs: real part, imaginary part; the shapes count both.")
    if api.sparse:
        lines.append(f"Sparsity: the places of packed entries are in {api.name}_sparsity.h.")
    return lines


def _array(parameter: Parameter) -> str:
    array = parameter.array
    if isinstance(array, Output) and array.pattern is not None:
        pattern = array.pattern
        height, width = pattern.shape
        order = {"csc": "column by column", "regions": "as its loops write them"}.get(pattern.format, "row by row")
        return f"the {pattern.nnz} entries of a sparse {height} x {width} matrix, {order}"
    original = f"{array.name}: " if isinstance(array, Input) and array.name != parameter.name else ""
    extent = "a scalar" if array.shape == () else f"shape {array.shape}"
    return f"{original}{extent}, {array.size} {parameter.scalar}{'s' * (array.size != 1)}"


def _comment(lines: Sequence[str]) -> str:
    body = [f" * {in_comment(line)}".rstrip() for line in lines]
    return "\n".join(["/**", *body, " */", ""])


def in_comment(text: str) -> str:
    """Return text (the names of arrays may be any) that ends no comment, begins none, and stays on its line.

    >>> in_comment("a*/b/*c??/" + chr(10))
    'a* /b/ *c? ?/?'
    """
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return re.sub(r"/(?=\*)|\*(?=/)|\?(?=\?)", r"\g<0> ", plain)
