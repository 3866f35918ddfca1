"""symad: nested automatic differentiation on computer algebra, compiled to native kernels.

The map, by purpose (start here; each name's docstring has an example):

trace         trace, from_sympy, from_program, Trace, source_lines
first order   jvp, linearize, vjp, grad, value_and_grad, derivative
matrices      jacfwd, jacrev, jacobian, batched_jacobian, sum_gradient, hessian, hvp, hutchinson_trace, SparseMatrix,
              sparsity, verify_sparsity, SparsityPattern, value_gradient_hessian
higher order  taylor, derivative_along, vhv, mixed_derivative, derivative_tensor, mixed_partials, taylor_polynomial,
              laplacian, biharmonic, choices, SymmetricTensor, MixedPartials, TaylorPolynomial
rules         custom_derivative, stop_gradient, root, fixed_point, argmin
control flow  cond, sum_over, vmap, scan, fori_loop, while_loop
native        plan, CompilationPlan, compile, jit, Kernel, load
containers    register_container
see           expand, explain, draw, spy, growth, loops, read_llvm, read_assembly, Expansion, Explanation, Drawing,
              Spy, Growth, LoopReport, CodeReading
check         check_expansion, check_derivative, compare, step_errors, verify, enclose, enclose_range, CheckedAnswer,
              Comparison, StepErrors, Verification, BoxVerification, RangeEnclosure
errors        WorkbenchError and its kinds, in symad.errors; FallbackWarning
"""

from codegen import Kernel
from codegen.ir.sparsity import SparsityPattern
from symad.checking.comparison.compare import StepErrors, compare, step_errors
from symad.checking.comparison.comparison_result import Comparison
from symad.checking.verification.balls import enclose
from symad.checking.verification.balls_range import RangeEnclosure, enclose_range
from symad.checking.verification.verification_result import BoxVerification
from symad.checking.verification.verify import Verification, verify
from symad.compiling.kernel_containers import load
from symad.compiling.native import compile, jit
from symad.compiling.plan import CompilationPlan
from symad.compiling.planning import plan
from symad.derivatives.custom import custom_derivative, stop_gradient
from symad.derivatives.implicit import fixed_point, root
from symad.derivatives.interpolation import MixedPartials
from symad.derivatives.modes import Choice, choices
from symad.derivatives.tensor import SymmetricTensor, TaylorPolynomial
from symad.drawing.draw import draw
from symad.drawing.drawing import Drawing
from symad.drawing.growth import Growth, growth
from symad.drawing.spy import Spy, spy
from symad.errors import (
    ArgumentError,
    ConvergenceError,
    EscapedValueError,
    FallbackWarning,
    InvariantError,
    LimitError,
    LoweringError,
    RuleError,
    TraceError,
    WorkbenchError,
)
from symad.teaching.answers.answer_check import CheckedAnswer, check_derivative, check_expansion
from symad.teaching.expansion.expand import Expansion, expand
from symad.teaching.explanation.explain import Explanation, explain
from symad.teaching.loops_report import LoopReport, loops
from symad.teaching.machine_code import CodeReading, read_assembly, read_llvm
from symad.tracing.calling.scope import source_lines
from symad.tracing.control import fori_loop, scan, sum_over, vmap, while_loop
from symad.tracing.control.branches import cond
from symad.tracing.from_sympy import from_program, from_sympy
from symad.tracing.trace import Trace, trace
from symad.tracing.values.container_types import register_container
from symad.tracing.values.sparse_matrix import SparseMatrix
from symad.transforms.first_order import (
    derivative,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from symad.transforms.higher_order import (
    biharmonic,
    derivative_along,
    derivative_tensor,
    laplacian,
    mixed_derivative,
    mixed_partials,
    taylor,
    taylor_polynomial,
    vhv,
)
from symad.transforms.jacobians import batched_jacobian, hutchinson_trace, sparsity, sum_gradient, verify_sparsity
from symad.transforms.optimisation import argmin, value_gradient_hessian

__all__ = [
    "ArgumentError", "BoxVerification", "CheckedAnswer", "Choice", "CodeReading", "Comparison", "CompilationPlan",
    "ConvergenceError", "Drawing", "EscapedValueError", "Expansion", "Explanation", "FallbackWarning", "Growth",
    "InvariantError", "Kernel", "LimitError", "LoopReport", "LoweringError", "MixedPartials", "RangeEnclosure",
    "RuleError", "SparseMatrix", "SparsityPattern", "Spy", "StepErrors", "SymmetricTensor", "TaylorPolynomial",
    "Trace", "TraceError", "Verification", "WorkbenchError", "argmin", "batched_jacobian", "biharmonic",
    "check_derivative", "check_expansion", "choices", "compare", "compile", "cond", "custom_derivative",
    "derivative", "derivative_along", "derivative_tensor", "draw", "enclose", "enclose_range", "expand", "explain",
    "fixed_point", "fori_loop", "from_program", "from_sympy", "grad", "growth", "hessian", "hutchinson_trace",
    "hvp", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "laplacian", "linearize", "load", "loops",
    "mixed_derivative", "mixed_partials", "plan", "read_assembly", "read_llvm", "register_container", "root",
    "scan", "source_lines", "sparsity", "spy", "step_errors", "stop_gradient", "sum_gradient", "sum_over", "taylor",
    "taylor_polynomial", "trace", "value_and_grad", "value_gradient_hessian", "verify", "verify_sparsity", "vhv",
    "vjp", "vmap", "while_loop",
]  # fmt: skip
