"""symad differentiates NumPy functions and SymPy expressions to any order and compiles the result to native kernels.

The map, by purpose (start here; each name's docstring has an example):

trace         trace, from_sympy, from_program, source_lines
first order   jvp, linearize, vjp, grad, value_and_grad, derivative
matrices      jacfwd, jacrev, jacobian, batched_jacobian, hessian, hvp, value_gradient_hessian, sparsity,
              verify_sparsity, SparsityPattern, choices
higher order  partials, taylor, laplacian
rules         custom_derivative, stop_gradient, root, fixed_point, argmin
control flow  cond, sum_over, vmap, scan, fori_loop, while_loop
solving       Problem, ode, odeint, rowwise
native        plan, compile, jit, lambdify, Kernel, load, to_jax, to_torch, to_pytensor, export
containers    register_container
see           steps, expand, explain, draw, spy, growth, read_llvm, read_assembly, exhibit
check         check_expansion, check_derivative, check_trace, compare, step_errors, verify, enclose
practise      exercise, worksheet
errors        WorkbenchError, the base class; errors has all others
results       results: the classes of what these functions return
version       __version__
"""

from codegen.later import later
from symad.old_names import OLD_NAMES

__getattr__, __dir__ = later(__name__, OLD_NAMES)
