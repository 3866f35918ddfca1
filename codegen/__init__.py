"""codegen: compiles a program of SymPy heads, straight lines or loops, to a native kernel; a fast `lambdify`."""

from codegen.build import compile_program, load_kernel
from codegen.calls.compiled import Stats
from codegen.calls.kernel import Kernel
from codegen.errors import ArgumentError, LoweringError, UnboundSymbolError, WorkbenchError
from codegen.functions.intrinsics import supports
from codegen.interpret import evaluate
from codegen.lambdify import Lambdified, lambdify
from codegen.program import Input, Output, Program
from codegen.regions.printing import text as rolled_text
from codegen.regions.region import RolledProgram
from codegen.regions.unroll import unroll
from codegen.sympy_in import program_from_sympy, walk

__all__ = [
    "ArgumentError", "Input", "Kernel", "Lambdified", "LoweringError", "Output", "Program", "RolledProgram", "Stats",
    "UnboundSymbolError", "WorkbenchError", "compile_program", "evaluate", "lambdify", "load_kernel",
    "program_from_sympy", "rolled_text", "supports", "unroll", "walk",
]  # fmt: skip
