"""codegen compiles programs of SymPy heads, straight lines or loops, to native kernels. It has a fast `lambdify`.

The map, by purpose:

expressions   lambdify, Lambdified, program_from_sympy, walk, supports
programs      Program, Input, Output, RolledProgram, unroll, rolled_text, evaluate
kernels       compile_program, load_kernel, Kernel, Stats, GpuKernel
errors        WorkbenchError, ArgumentError, LoweringError, UnboundSymbolError, DeviceError
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
