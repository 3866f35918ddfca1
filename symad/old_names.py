"""The old public names of `symad`, and what each is now: one table, which the package's `__getattr__` reads."""

from __future__ import annotations

from codegen.later import OldName

_RESULTS = (
    "BoxVerification", "CheckedAnswer", "Choice", "CodeReading", "Comparison", "CompilationPlan", "Drawing", "Exhibit",
    "Expansion", "Explanation", "Growth", "InitialValueProblem", "MixedPartials", "Rowwise", "Solution", "SparseMatrix",
    "Spy", "StepErrors", "SymmetricTensor", "TaylorPolynomial", "Trace", "Trajectory", "Verification",
)  # fmt: skip
_ERRORS = (
    "ArgumentError", "ConvergenceError", "EscapedValueError", "FallbackWarning", "FrozenValueWarning", "InvariantError",
    "LimitError", "LoweringError", "RuleError", "TraceError", "UnknownStateWarning",
)  # fmt: skip

OLD_NAMES = {
    **{name: OldName(f"symad.results.{name}", f"symad.results:{name}") for name in _RESULTS},
    **{name: OldName(f"symad.errors.{name}", f"symad.errors:{name}") for name in _ERRORS},
    "derivative_tensor": OldName("partials(f, order)", "symad:partials"),
    "loops": OldName("plan", "symad:plan"),
    "mixed_derivative": OldName("partials(f, indices)", "symad:partials"),
    **{
        name: OldName(instead, f"symad.old_functions:{name}")
        for name, instead in {
            "biharmonic": "laplacian(f, power=2)",
            "derivative_along": "partials(f, order, along=v)(x)",
            "enclose_range": "enclose(kernel, box=box)",
            "hutchinson_trace": "np.mean([np.sum(v * jvp(f, (x,), (v,))[1]) for v in probes])",
            "mixed_partials": 'partials(f, order, mode="interpolation")(x)',
            "sum_gradient": "grad(lambda x: np.sum(f(x)))",
            "taylor_polynomial": "taylor(f, (x,), None, degree)",
            "vhv": "partials(f, 2, along=v)(x)",
        }.items()
    },
}
