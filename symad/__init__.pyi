from codegen.ir.sparsity import SparsityPattern as SparsityPattern
from codegen.machine.calls.kernel import Kernel as Kernel
from symad import errors as errors
from symad.classroom.answers.answer_check import (
    check_derivative as check_derivative,
    check_expansion as check_expansion,
)
from symad.classroom.answers.answer_page import CheckedAnswer as CheckedAnswer
from symad.classroom.code_reading.machine_code import (
    CodeReading as CodeReading,
    read_assembly as read_assembly,
    read_llvm as read_llvm,
)
from symad.classroom.comparison.compare import (
    StepErrors as StepErrors,
    compare as compare,
    step_errors as step_errors,
)
from symad.classroom.comparison.comparison_result import Comparison as Comparison
from symad.classroom.confusion.exhibit import Exhibit as Exhibit, exhibit as exhibit
from symad.classroom.drawing.draw import draw as draw
from symad.classroom.drawing.drawing import Drawing as Drawing
from symad.classroom.drawing.growth import Growth as Growth, growth as growth
from symad.classroom.drawing.spy import Spy as Spy, spy as spy
from symad.classroom.expansion.expand import Expansion as Expansion, expand as expand
from symad.classroom.explanation.explain import Explanation as Explanation, explain as explain
from symad.classroom.verification.enclose import enclose as enclose, enclose_range as enclose_range
from symad.classroom.verification.verification_result import BoxVerification as BoxVerification
from symad.classroom.verification.verify import Verification as Verification, verify as verify
from symad.compiling.native import compile as compile, jit as jit
from symad.compiling.plan import CompilationPlan as CompilationPlan
from symad.compiling.planning import loops as loops, plan as plan
from symad.compiling.with_derivatives import lambdify as lambdify
from symad.derivatives.custom import custom_derivative as custom_derivative, stop_gradient as stop_gradient
from symad.derivatives.implicit import fixed_point as fixed_point, root as root
from symad.derivatives.interpolation import MixedPartials as MixedPartials
from symad.derivatives.modes import Choice as Choice, choices as choices
from symad.derivatives.tensor import SymmetricTensor as SymmetricTensor, TaylorPolynomial as TaylorPolynomial
from symad.doors.callbacks import Solution as Solution
from symad.doors.data_rows import Rowwise as Rowwise, rowwise as rowwise
from symad.doors.exported_functions import export as export
from symad.doors.loading import load as load
from symad.doors.ode import (
    InitialValueProblem as InitialValueProblem,
    Trajectory as Trajectory,
    ode as ode,
    odeint as odeint,
)
from symad.doors.problem import Problem as Problem
from symad.doors.with_jax import to_jax as to_jax
from symad.doors.with_pytensor import to_pytensor as to_pytensor
from symad.doors.with_torch import to_torch as to_torch
from symad.errors import (
    ArgumentError as ArgumentError,
    ConvergenceError as ConvergenceError,
    EscapedValueError as EscapedValueError,
    FallbackWarning as FallbackWarning,
    FrozenValueWarning as FrozenValueWarning,
    InvariantError as InvariantError,
    LimitError as LimitError,
    LoweringError as LoweringError,
    RuleError as RuleError,
    TraceError as TraceError,
    UnknownStateWarning as UnknownStateWarning,
    WorkbenchError as WorkbenchError,
)
from symad.tracing.calling.scope import source_lines as source_lines
from symad.tracing.control.branches import cond as cond
from symad.tracing.control.maps import vmap as vmap
from symad.tracing.control.scans import fori_loop as fori_loop, scan as scan
from symad.tracing.control.whiles import while_loop as while_loop
from symad.tracing.control.written_sums import sum_over as sum_over
from symad.tracing.from_sympy import from_program as from_program, from_sympy as from_sympy
from symad.tracing.trace import Trace as Trace, trace as trace
from symad.tracing.values.container_types import register_container as register_container
from symad.tracing.values.sparse_matrix import SparseMatrix as SparseMatrix
from symad.transforms.first_order import (
    derivative as derivative,
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
from symad.transforms.higher_order import (
    biharmonic as biharmonic,
    derivative_along as derivative_along,
    derivative_tensor as derivative_tensor,
    hvp as hvp,
    laplacian as laplacian,
    mixed_derivative as mixed_derivative,
    mixed_partials as mixed_partials,
    taylor as taylor,
    taylor_polynomial as taylor_polynomial,
    vhv as vhv,
)
from symad.transforms.jacobians import (
    batched_jacobian as batched_jacobian,
    hutchinson_trace as hutchinson_trace,
    sparsity as sparsity,
    sum_gradient as sum_gradient,
    verify_sparsity as verify_sparsity,
)
from symad.transforms.linear_transforms import jvp as jvp, linearize as linearize, vjp as vjp
from symad.transforms.optimisation import argmin as argmin, value_gradient_hessian as value_gradient_hessian
from symad.version import __version__ as __version__
