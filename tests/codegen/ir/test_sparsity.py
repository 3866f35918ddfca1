"""Sparsity patterns: order of storage, index arrays, sharing with SciPy, wrong matrices refused by name."""

import copy
import pickle
import re
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu, spsolve

from codegen.errors import ArgumentError
from codegen.ir.sparsity import SparsityPattern

FORMATS = ("coo", "csr", "csc")


def pattern_of(dense, format):
    rows, columns = np.nonzero(dense)
    if format == "csc":
        columns, rows = np.nonzero(np.transpose(dense))
    return SparsityPattern(rows, columns, np.shape(dense), format)


def random_matrix(seed, density=0.3):
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 12, 2).tolist())
    return (generator.random(shape) < density) * generator.normal(size=shape)


MATRICES = [
    *[random_matrix(seed) for seed in range(6)],
    np.zeros((3, 4)),
    np.zeros((1, 1)),
    np.ones((1, 1)),
    np.ones((3, 2)),
    np.outer([0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]),  # rows and columns of zeros, the last ones too
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dense", MATRICES, ids=lambda dense: "x".join(map(str, dense.shape)))
def test_index_arrays_and_matrices_are_those_of_scipy(dense, format):
    pattern = pattern_of(dense, format)
    right = getattr(sparse, f"{format}_array")(dense)
    rows, columns = pattern
    made = pattern.scipy(dense[rows, columns])
    assert type(made) is type(right)
    assert (made != right).nnz == 0
    assert np.array_equal(made.toarray(), dense)
    if format != "coo":
        assert np.array_equal(pattern.indptr, right.indptr)
        assert np.array_equal(pattern.indices, right.indices)
        assert pattern.indices.dtype == pattern.indptr.dtype == made.indices.dtype == np.int32
    assert made.has_canonical_format
    assert np.array_equal(made.data, right.data)
    assert (pattern.nnz, pattern.toarray().tolist()) == (right.nnz, (dense != 0).tolist())


@pytest.mark.parametrize("format", FORMATS)
def test_matrices_of_a_pattern_have_the_data_that_was_given_and_index_arrays_of_their_own(format):
    pattern = pattern_of(MATRICES[0], format)
    one, two = np.arange(pattern.nnz) + 1.0, np.arange(pattern.nnz) + 2.0
    first, second = pattern.scipy(one), pattern.scipy(two)
    assert first.data is one
    assert second.data is two
    for left, right in zip(index_arrays(first), index_arrays(second), strict=True):
        assert not np.may_share_memory(left, right)
        assert left.flags.writeable
    first.data[:] = 7.0
    assert np.array_equal(second.data, np.arange(pattern.nnz) + 2.0)


def index_arrays(matrix):
    return (matrix.row, matrix.col) if matrix.format == "coo" else (matrix.indices, matrix.indptr)


@pytest.mark.parametrize("format", FORMATS)
def test_scipy_computes_with_the_matrices(format):
    dense = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    pattern = pattern_of(dense, format)
    matrix = pattern.scipy(dense[pattern.rows, pattern.columns])
    vector = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(matrix @ vector, dense @ vector)
    assert np.array_equal((matrix.T @ matrix).toarray(), dense.T @ dense)
    assert np.array_equal((matrix + matrix).toarray(), 2 * dense)
    assert np.array_equal(matrix.tocsr()[1:].toarray(), dense[1:])
    assert spsolve(matrix.tocsc(), vector) == pytest.approx(np.linalg.solve(dense, vector), rel=1e-14)
    assert splu(sparse.csc_array(matrix)).solve(vector) == pytest.approx(np.linalg.solve(dense, vector), rel=1e-14)
    assert connected_components(matrix)[0] == 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_may_be_sorted_and_pruned(format):
    pattern = SparsityPattern([0, 1], [0, 1], (2, 2), format)
    matrix, other = pattern.scipy(np.array([0.0, 1.0])), pattern.scipy([2.0, 3.0])
    getattr(matrix, "sort_indices", matrix.sum_duplicates)()
    matrix.eliminate_zeros()
    assert matrix.nnz == 1
    assert np.array_equal(other.toarray(), [[2.0, 0.0], [0.0, 3.0]])
    with pytest.raises(ArgumentError, match="a matrix of another pattern, with 1 entries"):
        pattern.data_of(matrix)


REFUSED = [
    (([1, 0], [0, 0]), "coo", "entries out of order for format 'coo': they are stored by row, then column, each place"),
    (([0, 0], [1, 0]), "csr", "entries out of order for format 'csr'"),
    (([0, 1], [1, 0]), "csc", "entries out of order for format 'csc': they are stored by column, then row"),
    (([0, 0], [1, 1]), "coo", "entries out of order"),
    (([0, 2], [0, 0]), "coo", "entries outside of a matrix of shape (2, 2): indices count from 0"),
    (([0], [-1]), "coo", "entries outside of a matrix of shape (2, 2)"),
    (([0, 1], [0]), "coo", "2 rows and 1 columns of entries"),
    (([0.5], [0]), "coo", "rows of shape (1,) and dtype float64: they are a list of integers"),
    (([0], [[0]]), "coo", "columns of shape (1, 1) and dtype int64: they are a list of integers"),
    (([0], [0]), "bsr", "format='bsr'"),
]


@pytest.mark.parametrize(("places", "format", "message"), REFUSED)
def test_wrong_places_are_refused(places, format, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        SparsityPattern(*places, (2, 2), format)


def test_the_arrays_of_the_caller_are_copied():
    rows = np.array([0, 1])
    pattern = SparsityPattern(rows, rows, (2, 2))
    rows[0] = 1
    assert pattern.rows.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        pattern.columns[0] = 1


def test_equal_means_the_same_storage():
    pattern = SparsityPattern([0, 1], [1, 0], (2, 2))
    assert pattern == SparsityPattern([0, 1], [1, 0], (2, 2))
    assert hash(pattern) == hash(SparsityPattern([0, 1], [1, 0], (2, 2)))
    for other in (
        ([0, 1], [1, 1], (2, 2)),
        ([0, 1], [1, 0], (2, 3)),
        ([0, 1], [1, 0], (2, 2), "csr"),
        ([0], [1], (2, 2)),
    ):
        assert pattern != SparsityPattern(*other)
    assert pattern != "coo"


@pytest.mark.parametrize("format", FORMATS)
def test_a_pattern_is_copied_and_pickled_without_what_is_cached(format):
    pattern = pattern_of(MATRICES[0], format)
    size = len(pickle.dumps(pattern))
    pattern.scipy(np.zeros(pattern.nnz))
    assert len(pickle.dumps(pattern)) == size
    for other in (pickle.loads(pickle.dumps(pattern)), copy.deepcopy(pattern)):
        assert other == pattern
        assert not other.rows.flags.writeable
        assert np.array_equal(other.indptr, pattern.indptr)


def test_the_places_of_any_format_are_saved_and_come_back_by_row(tmp_path):
    pattern = pattern_of(MATRICES[0], "csc")
    pattern.save(tmp_path / "pattern.mtx")
    assert SparsityPattern.load(tmp_path / "pattern.mtx") == pattern_of(MATRICES[0], "coo")


def test_indices_that_do_not_fit_into_32_bits_have_64():
    pattern = SparsityPattern([0, 2**31 + 1], [0, 0], (2**32, 1), "csc")
    assert pattern.indices.tolist() == [0, 2**31 + 1]
    assert pattern.indices.dtype == pattern.scipy([1.0, 2.0]).indices.dtype == np.int64
    assert pattern.scipy([1.0, 2.0]).nnz == 2


OWN = SparsityPattern([0, 1, 2], [0, 1, 1], (3, 2), "csc")


@pytest.mark.parametrize(
    "matrix",
    [
        OWN.scipy([1.0, 2.0, 3.0]),
        sparse.csc_array(OWN.scipy([1.0, 2.0, 3.0]).toarray()),
        sparse.csc_matrix(OWN.scipy([1.0, 2.0, 3.0]).toarray()),
        sparse.csc_array(([1.0, 2.0, 3.0], np.array([0, 1, 2], dtype=np.int64), np.array([0, 1, 3])), shape=(3, 2)),
        pickle.loads(pickle.dumps(OWN)).scipy([1.0, 2.0, 3.0]),
    ],
)
def test_matrices_of_the_pattern_are_taken_whoever_made_them(matrix):
    assert OWN.data_of(matrix) is matrix.data


DENSE = OWN.scipy([1.0, 2.0, 3.0]).toarray()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (sparse.csr_array(DENSE), "out: a 3x2 matrix in csr: the values are those of a 3x2 matrix in csc"),
        (sparse.coo_array(DENSE), "out: a 3x2 matrix in coo: the values are those of a 3x2 matrix in csc"),
        (sparse.csc_array(DENSE.T), "out: a 2x3 matrix in csc: the values are those of a 3x2 matrix in csc"),
        (sparse.csc_array(DENSE[::-1]), "out: a matrix of another pattern, with 3 entries: the values are those of 3 "
         "entries at fixed places; give a matrix that .scipy() made"),
        (sparse.csc_array(np.ones((3, 2))), "out: a matrix of another pattern, with 6 entries"),
        (sparse.csc_array(([1.0, 2.0, 3.0], [0, 2, 1], [0, 1, 3]), shape=(3, 2)), "a matrix of another pattern"),
        (sparse.bsr_array(DENSE), "out: bsr_array: values go into an array, or a matrix in csc"),
        (sparse.lil_array(DENSE), "out: lil_array: values go into an array, or a matrix in csc"),
        ([1.0, 2.0, 3.0], "out: list: values go into an array, or a matrix in csc"),
        (None, "out: NoneType: values go into an array, or a matrix in csc"),
    ],
)  # fmt: skip
def test_other_matrices_are_refused(matrix, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        OWN.data_of(matrix, "out")


def test_rows_and_columns_of_coo_in_another_order_are_another_pattern():
    pattern = SparsityPattern([0, 1], [1, 0], (2, 2))
    shuffled = sparse.coo_array(([2.0, 1.0], ([1, 0], [0, 1])), shape=(2, 2))
    with pytest.raises(ArgumentError, match="another pattern"):
        pattern.data_of(shuffled)


@pytest.mark.parametrize("data", [np.ones(2), np.ones((3, 1)), 1.0, np.array([object()] * 3), ["a", "b", "c"]])
def test_values_that_do_not_fit_are_refused(data):
    with pytest.raises(ArgumentError, match="the pattern has 3 places, and SciPy holds numbers"):
        OWN.scipy(data)


def test_without_scipy_there_is_a_pattern_and_a_clear_refusal(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    pattern = SparsityPattern([0, 1], [0, 1], (2, 2), "csr")
    assert pattern.indptr.tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match=r"pip install 'symad\[special\]'"):
        pattern.scipy([1.0, 2.0])


def test_the_order_of_regions_is_any_fixed_order():
    pattern = SparsityPattern([1, 0, 1], [0, 0, 1], (2, 2), "regions")
    made = pattern.scipy([2.0, 1.0, 3.0])
    assert type(made) is sparse.coo_array
    assert made.toarray().tolist() == [[1.0, 0.0], [2.0, 3.0]]
    assert made.tocsc().toarray().tolist() == [[1.0, 0.0], [2.0, 3.0]]
    assert pattern.data_of(made).tolist() == [2.0, 1.0, 3.0]
    assert pickle.loads(pickle.dumps(pattern)) == pattern
    assert pattern != SparsityPattern([0, 1, 1], [0, 0, 1], (2, 2), "regions")
    assert pattern != SparsityPattern([0, 1, 1], [0, 0, 1], (2, 2))


@pytest.mark.parametrize("name", ["indptr", "indices"])
def test_the_order_of_regions_has_no_compressed_indices(name):
    with pytest.raises(ArgumentError, match=f'{name} of a pattern in format "regions"'):
        getattr(SparsityPattern([1, 0], [0, 0], (2, 2), "regions"), name)


def test_each_place_is_stored_once_in_the_order_of_regions():
    with pytest.raises(ArgumentError, match="entries at the same place"):
        SparsityPattern([1, 0, 1], [0, 0, 0], (2, 2), "regions")
