"""Importing this module fills the tables behind NumPy's protocols (see `registry`) and adds SciPy's ufuncs."""

import symad.tracing.functions.curves
import symad.tracing.functions.decide
import symad.tracing.functions.least_squares
import symad.tracing.functions.norms
import symad.tracing.functions.order
import symad.tracing.functions.pad
import symad.tracing.functions.polynomials
import symad.tracing.functions.products
import symad.tracing.functions.reduce
import symad.tracing.functions.refusals
import symad.tracing.functions.select
import symad.tracing.functions.shape
import symad.tracing.functions.solve
import symad.tracing.functions.special
import symad.tracing.functions.write
import symad.tracing.special
import symad.tracing.ufunc_methods  # noqa: F401 (all of them register themselves)
