"""symad differentiates NumPy functions and SymPy expressions to any order and compiles the result to native kernels.

The map, by purpose (start here; each name's docstring has an example):

trace         trace, from_sympy, from_program, Trace, source_lines
first order   jvp, linearize, vjp, grad, value_and_grad, derivative
matrices      jacfwd, jacrev, jacobian, batched_jacobian, sum_gradient, hessian, hvp, hutchinson_trace, SparseMatrix,
              sparsity, verify_sparsity, SparsityPattern, value_gradient_hessian
higher order  taylor, derivative_along, vhv, mixed_derivative, derivative_tensor, mixed_partials, taylor_polynomial,
              laplacian, biharmonic, choices, Choice, SymmetricTensor, MixedPartials, TaylorPolynomial
rules         custom_derivative, stop_gradient, root, fixed_point, argmin
control flow  cond, sum_over, vmap, scan, fori_loop, while_loop
solving       Problem, Solution, ode, odeint, InitialValueProblem, Trajectory, rowwise, Rowwise
native        plan, CompilationPlan, loops, compile, jit, lambdify, Kernel, load, to_jax, to_torch, to_pytensor, export
containers    register_container
see           expand, explain, draw, spy, growth, read_llvm, read_assembly, exhibit, Expansion, Explanation,
              Drawing, Exhibit, Spy, Growth, CodeReading
check         check_expansion, check_derivative, compare, step_errors, verify, enclose, enclose_range, CheckedAnswer,
              Comparison, StepErrors, Verification, BoxVerification
errors        WorkbenchError, ArgumentError, TraceError, EscapedValueError, RuleError, LoweringError, LimitError,
              ConvergenceError, InvariantError, FallbackWarning, FrozenValueWarning, UnknownStateWarning; errors has all
version       __version__
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
