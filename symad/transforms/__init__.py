"""The public transforms: a few lines of composition each."""

# ruff: noqa: F401 - they register what stands in for SciPy's solvers
import symad.transforms.scipy_fits
import symad.transforms.scipy_integrals
import symad.transforms.scipy_minima
import symad.transforms.scipy_solvers
