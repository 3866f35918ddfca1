"""Importing this module fills the tables behind NumPy's protocols (see `registry`) and adds SciPy's ufuncs."""

import symad.tracing.functions_curves
import symad.tracing.functions_decide
import symad.tracing.functions_least_squares
import symad.tracing.functions_norms
import symad.tracing.functions_order
import symad.tracing.functions_pad
import symad.tracing.functions_polynomials
import symad.tracing.functions_products
import symad.tracing.functions_reduce
import symad.tracing.functions_select
import symad.tracing.functions_shape
import symad.tracing.functions_solve
import symad.tracing.functions_special
import symad.tracing.functions_write
import symad.tracing.refusals
import symad.tracing.special
import symad.tracing.ufunc_methods  # noqa: F401 (all of them register themselves)
