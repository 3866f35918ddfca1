from codegen.ir.sparsity import SparsityPattern as SparsityPattern
from codegen.machine.calls.kernel import Kernel as Kernel
from symad import errors as errors, results as results
from symad.classroom.answers.answer_check import (
    check_derivative as check_derivative,
    check_expansion as check_expansion,
)
from symad.classroom.answers.trace_answers import check_trace as check_trace
from symad.classroom.code_reading.machine_code import read_assembly as read_assembly, read_llvm as read_llvm
from symad.classroom.comparison.compare import compare as compare, step_errors as step_errors
from symad.classroom.confusion.exhibit import exhibit as exhibit
from symad.classroom.derivation.derivation_steps import steps as steps
from symad.classroom.drawing.draw import draw as draw
from symad.classroom.drawing.growth import growth as growth
from symad.classroom.drawing.spy import spy as spy
from symad.classroom.exercises.exercise import exercise as exercise, worksheet as worksheet
from symad.classroom.expansion.expand import expand as expand
from symad.classroom.explanation.explain import explain as explain
from symad.classroom.verification.enclose import enclose as enclose
from symad.classroom.verification.verify import verify as verify
from symad.compiling.native import compile as compile, jit as jit
from symad.compiling.planning import plan as plan
from symad.compiling.with_derivatives import lambdify as lambdify
from symad.derivatives.custom import custom_derivative as custom_derivative, stop_gradient as stop_gradient
from symad.derivatives.implicit import fixed_point as fixed_point, root as root
from symad.derivatives.modes import choices as choices
from symad.doors.compiled_problem import load as load
from symad.doors.data_rows import rowwise as rowwise
from symad.doors.exported_functions import export as export
from symad.doors.ode import ode as ode, odeint as odeint
from symad.doors.problem import Problem as Problem
from symad.doors.with_jax import to_jax as to_jax
from symad.doors.with_pytensor import to_pytensor as to_pytensor
from symad.doors.with_torch import to_torch as to_torch
from symad.errors import WorkbenchError as WorkbenchError
from symad.tracing.calling.scope import source_lines as source_lines
from symad.tracing.control.maps import sum_over as sum_over, vmap as vmap
from symad.tracing.control.scans import cond as cond, fori_loop as fori_loop, scan as scan, while_loop as while_loop
from symad.tracing.from_sympy import from_program as from_program, from_sympy as from_sympy
from symad.tracing.trace import trace as trace
from symad.tracing.values.container_types import register_container as register_container
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
    hvp as hvp,
    laplacian as laplacian,
    partials as partials,
    taylor as taylor,
)
from symad.transforms.jacobians import (
    batched_jacobian as batched_jacobian,
    sparsity as sparsity,
    verify_sparsity as verify_sparsity,
)
from symad.transforms.linear_transforms import jvp as jvp, linearize as linearize, vjp as vjp
from symad.transforms.optimisation import argmin as argmin, value_gradient_hessian as value_gradient_hessian
from symad.version import __version__ as __version__
