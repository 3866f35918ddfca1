"""Importing this module fills the two tables behind NumPy's protocols (see `registry`)."""

import symad.tracing.functions_decide
import symad.tracing.functions_linear
import symad.tracing.functions_reduce
import symad.tracing.functions_select
import symad.tracing.functions_shape
import symad.tracing.refusals
import symad.tracing.ufunc_methods  # noqa: F401 (all seven register themselves)
