from codegen.errors import (
    ArgumentError as ArgumentError,
    DeviceError as DeviceError,
    LoweringError as LoweringError,
    UnboundSymbolError as UnboundSymbolError,
    WorkbenchError as WorkbenchError,
)
from codegen.evaluation.interpret import evaluate as evaluate
from codegen.expressions.printing import rolled_text as rolled_text
from codegen.expressions.sympy_in import program_from_sympy as program_from_sympy, walk as walk
from codegen.functions.intrinsics import supports as supports
from codegen.ir.program import Input as Input, Output as Output, Program as Program
from codegen.ir.region import RolledProgram as RolledProgram
from codegen.ir.unroll import unroll as unroll
from codegen.lambdified.function import Lambdified as Lambdified
from codegen.lambdified.lambdify import lambdify as lambdify
from codegen.machine.build import compile_program as compile_program
from codegen.machine.calls.compiled import Stats as Stats
from codegen.machine.calls.kernel import Kernel as Kernel
from codegen.machine.gpu.gpu_kernel import GpuKernel as GpuKernel
from codegen.machine.stored_kernels import load_kernel as load_kernel
