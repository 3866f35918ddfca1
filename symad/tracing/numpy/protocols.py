"""Importing this module fills the tables behind NumPy's protocols (see `registry`) and adds SciPy's ufuncs."""

# ruff: noqa: F401 - all of them register themselves
import symad.tracing.numpy.curves
import symad.tracing.numpy.decide
import symad.tracing.numpy.distances
import symad.tracing.numpy.distributions
import symad.tracing.numpy.fourier_functions
import symad.tracing.numpy.histograms
import symad.tracing.numpy.least_squares
import symad.tracing.numpy.masks
import symad.tracing.numpy.orders
import symad.tracing.numpy.pad
import symad.tracing.numpy.products
import symad.tracing.numpy.reduce
import symad.tracing.numpy.refusals
import symad.tracing.numpy.scipy_factors
import symad.tracing.numpy.scipy_matrices
import symad.tracing.numpy.select
import symad.tracing.numpy.selections
import symad.tracing.numpy.sets
import symad.tracing.numpy.shape
import symad.tracing.numpy.solve
import symad.tracing.numpy.special_functions
import symad.tracing.numpy.special_ufuncs
import symad.tracing.numpy.spectra
import symad.tracing.numpy.ufunc_methods
import symad.tracing.scipy.grids
import symad.tracing.scipy.linear_maps
import symad.tracing.scipy.neighbourhoods
import symad.tracing.scipy.pandas_functions
import symad.tracing.scipy.piecewise_polynomials
import symad.tracing.scipy.refused_names
import symad.tracing.scipy.sampled_integrals
import symad.tracing.scipy.sparse_products
import symad.tracing.scipy.splines
