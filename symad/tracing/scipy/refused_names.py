"""SciPy's functions and objects that are refused by name, with the replacement to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.traced import refuse_function

_SCATTERED = (
    "it computes with plain numbers",
    "give values on a grid to RegularGridInterpolator or RectBivariateSpline",
)
_LABELS = ("it counts or labels", "give it the numbers of what is not differentiated")
_UNTRACED = "it has no traced form"
_REFUSED: dict[str, dict[str, tuple[str, str]]] = {  # packages: functions, the reason, and what to do
    "linalg": {
        "eig eigvals schur hessenberg qz ordqz rsf2csf cdf2rdf eig_banded eigvals_banded eigh_tridiagonal "
        "eigvalsh_tridiagonal cossin": (
            "it comes from an iteration that has no traced form",
            "of a symmetric matrix np.linalg.eigh has derivatives",
        ),
        "fractional_matrix_power funm signm cosm sinm tanm coshm sinhm tanhm polar": (
            _UNTRACED, "of a symmetric matrix write (V * f(w)) @ V.T with w, V = np.linalg.eigh(a)",
        ),
        "lu ldl rq qr_delete qr_insert qr_multiply qr_update": (
            "its factors have no traced form", "use lu_factor with lu_solve, cholesky, or np.linalg.qr",
        ),
        "cho_solve_banded": (_UNTRACED, "use solveh_banded"),
        "solve_continuous_are solve_discrete_are": (_UNTRACED, "use symad.root with the equation"),
        "null_space orth subspace_angles orthogonal_procrustes pinvh diagsvd matrix_balance expm_cond expm_frechet": (
            _UNTRACED, "write it with np.linalg.svd, np.linalg.pinv, or scipy.linalg.expm",
        ),
    },
    "fft": {
        "hfft2 ihfft2 hfftn ihfftn fht ifht": (_UNTRACED, "write it with np.fft.hfft, np.fft.rfft or np.fft.fft"),
    },
    "special": {
        "legendre_p": (_UNTRACED, "use scipy.special.eval_legendre"),
        "assoc_legendre_p sph_legendre_p sph_harm_y": (_UNTRACED, "write it with powers, sines and cosines"),
        "factorial2 factorialk": (_UNTRACED, "write it with scipy.special.gamma"),
    },
    "interpolate": {
        "RBFInterpolator.__init__ RBFInterpolator.__call__ Rbf.__init__ Rbf.__call__ griddata "
        "LinearNDInterpolator.__init__ NearestNDInterpolator.__init__ CloughTocher2DInterpolator.__init__ "
        "_interpnd.NDInterpolatorBase.__call__ SmoothBivariateSpline.__init__ LSQBivariateSpline.__init__": _SCATTERED,
        "make_lsq_spline make_smoothing_spline LSQUnivariateSpline.__init__ lagrange barycentric_interpolate "
        "krogh_interpolate BPoly.__init__ NdPPoly.__init__ approximate_taylor_polynomial pade": (
            _UNTRACED, "use make_interp_spline, CubicSpline, or np.polyfit with np.polyval",
        ),
    },
    "signal": {
        "wiener order_filter sepfir2d symiirorder1 symiirorder2 lfiltic lfilter_zi sosfilt_zi freqz "
        "sosfreqz lsim dlsim": (_UNTRACED, "use lfilter, fftconvolve, or np.fft"),
        "hilbert hilbert2 welch periodogram csd coherence stft istft spectrogram": (
            _UNTRACED, "write it with np.fft.rfft of windows of the signal",
        ),
        "find_peaks argrelextrema argrelmax argrelmin peak_widths peak_prominences": (
            "its results are places, which follow values", "give it the numbers of what is not differentiated",
        ),
        "butter cheby1 cheby2 ellip bessel firwin firwin2 iirfilter iirnotch iirpeak remez": (
            "filters are designed from ordinary numbers", "design the filter outside of the function",
        ),
    },
    "ndimage": {
        "distance_transform_edt distance_transform_cdt distance_transform_bf label find_objects watershed_ift "
        "binary_erosion binary_dilation binary_opening binary_closing binary_fill_holes binary_propagation "
        "binary_hit_or_miss histogram": _LABELS,
        "sum_labels mean variance standard_deviation minimum maximum median extrema minimum_position "
        "maximum_position labeled_comprehension": (
            _UNTRACED, "write it with np.where(labels == k, x, 0), or np.bincount(labels, weights=x)",
        ),
        "rotate affine_transform geometric_transform": (
            _UNTRACED, "use scipy.ndimage.map_coordinates, whose coordinates are traced",
        ),
        "rank_filter percentile_filter generic_filter generic_filter1d generic_laplace generic_gradient_magnitude "
        "grey_erosion grey_dilation grey_opening grey_closing morphological_gradient black_tophat white_tophat "
        "spline_filter fourier_gaussian fourier_uniform fourier_shift fourier_ellipsoid": (
            _UNTRACED, "use maximum_filter, minimum_filter, median_filter or correlate",
        ),
    },
    "spatial.transform": {
        "Rotation.from_davenport Rotation.as_davenport": (
            _UNTRACED, "use from_rotvec of each axis times its angle, and *",
        ),
        "Rotation.mean Rotation.align_vectors": (
            _UNTRACED, "write it with np.linalg.eigh of the matrix of quaternions",
        ),
        "Rotation.reduce Rotation.approx_equal Rotation.concatenate Rotation.__setitem__": (
            _UNTRACED, "work with .as_quat() or .as_matrix()",
        ),
    },
    "sparse": {
        "diags diags_array spdiags block_diag bmat block_array hstack vstack kron kronsum": (
            "its result would be a sparse matrix of traced entries",
            "write np.diag(v) @ x as v * x, or give entries with their places: csr_array((data, (i, j)))",
        ),
    },
    "sparse.linalg": {
        "cg cgs bicg bicgstab gmres lgmres minres qmr gcrotmk tfqmr lsqr lsmr": (
            "its steps follow plain numbers", "use scipy.sparse.linalg.spsolve",
        ),
        "expm expm_multiply eigs eigsh svds lobpcg onenormest spilu inv norm aslinearoperator "
        "LinearOperator.matvec LinearOperator.__matmul__ LinearOperator.dot": (
            _UNTRACED, "use spsolve, A @ x, or the functions of scipy.linalg with A.toarray()",
        ),
    },
}  # fmt: skip


def _refusing(name: str, why: str, do: str) -> Callable[..., Any]:
    plain = name.removesuffix(".__init__").removesuffix(".__call__")
    return lambda *args, **keywords: refuse_function(plain, why, do)


for _package, _table in _REFUSED.items():
    for _names, (_why, _do) in _table.items():
        for _name in _names.split():
            _full = f"scipy.{_package}.{_name}"
            _held = ("_quat",) if _package == "spatial.transform" else ()
            stands_in_for(_full, held=_held)(_refusing(_full, _why, _do))
