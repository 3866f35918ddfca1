"""Sparsity patterns: exact, printed, saved, coloured, and verified by random probes."""

import numpy as np
import pytest

import symad as sa
from codegen.ir.sparsity import spy
from tests.support.cases import CASES

RANDOM = np.random.default_rng(11)


def band(x):
    return x[1:-1] * x[:-2] + np.sin(x[2:])


def arrow(x):
    return (x[0] * x).sum() + (x**4).sum()


def decided(x):
    """The pattern is that of both branches together."""
    return np.stack([x[0] if x[1] > 0 else x[2], x[1] * x[2]])


def pattern_of(*places, shape):
    rows, columns = np.array(places, dtype=np.intp).reshape(-1, 2).T
    return sa.SparsityPattern(rows, columns, shape)


def random_pattern(generator):
    shape = tuple(generator.integers(1, 30, 2).tolist())
    rows, columns = np.nonzero(generator.random(shape) < 0.15)
    return sa.SparsityPattern(rows, columns, shape)


def test_the_pattern_of_a_band():
    found = sa.sparsity(band, np.zeros(5))
    assert found == pattern_of((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 4), shape=(3, 5))
    assert (found.nnz, found.density) == (9, 0.6)
    assert np.array_equal(found.toarray(), np.triu(np.tril(np.ones((3, 5)), 2)).astype(bool))


def test_the_pattern_of_an_arrow():
    found = sa.sparsity(arrow, np.zeros(4), order=2)
    expected = np.eye(4, dtype=bool)
    expected[0] = expected[:, 0] = True
    assert np.array_equal(found.toarray(), expected)
    assert sa.sparsity(arrow, np.zeros(4)).shape == (1, 4)


def test_arguments_and_parts_are_chosen_as_for_jacobian():
    f = lambda p, x: p["a"] * x[0] + p["b"]  # noqa: E731
    p, x = {"a": np.ones(2), "b": np.ones(2)}, np.ones(3)
    assert sa.sparsity(f, p, x).shape == (2, 4)
    assert sa.sparsity(f, p, x, argnums=1) == pattern_of((0, 0), (1, 0), shape=(2, 3))
    assert sa.sparsity(f, p, x, wrt='p["b"]') == pattern_of((0, 0), (1, 1), shape=(2, 2))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.thinned
def test_the_cases_have_the_pattern_that_probes_find(case):
    x = np.array(case.point)
    for order in (1, 2):
        pattern = sa.sparsity(case.function, x, order=order)
        assert sa.verify_sparsity(case.function, pattern, x, order=order, points=2, spread=0.01) == []
    assert set(zip(*np.nonzero(sa.hessian(case.function)(x)), strict=True)) <= set(
        zip(pattern.rows, pattern.columns, strict=True)
    )


def test_both_branches_of_a_condition_count_and_a_pattern_of_one_is_found_out():
    whole = sa.sparsity(decided, np.ones(3))
    assert whole == pattern_of((0, 0), (0, 2), (1, 1), (1, 2), shape=(2, 3))
    assert sa.verify_sparsity(decided, whole, np.zeros(3)) == []
    at_one = sa.jacobian(decided, sparse=True)(np.ones(3))
    one = sa.SparsityPattern(at_one.rows, at_one.columns, at_one.shape)
    assert sa.verify_sparsity(decided, one, np.zeros(3)) == [(0, 2)]


@pytest.mark.parametrize(("f", "order"), [(band, 1), (arrow, 2)])
def test_every_missing_entry_is_found(f, order):
    x = np.ones(6)
    whole = sa.sparsity(f, x, order=order)
    for missing in range(whole.nnz):
        kept = np.arange(whole.nnz) != missing
        less = sa.SparsityPattern(whole.rows[kept], whole.columns[kept], whole.shape)
        found = sa.verify_sparsity(f, less, x, order=order, seed=missing)
        assert found == [(whole.rows[missing], whole.columns[missing])]


def test_an_empty_pattern_is_refuted_everywhere():
    assert sa.verify_sparsity(band, pattern_of(shape=(2, 4)), np.ones(4)) == [
        (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3)
    ]  # fmt: skip


def test_a_pattern_of_another_shape_is_refused():
    with pytest.raises(sa.errors.ArgumentError, match=r"pattern of shape \(2, 2\).*shape \(2, 4\)"):
        sa.verify_sparsity(band, pattern_of(shape=(2, 2)), np.ones(4))
    with pytest.raises(sa.errors.ArgumentError, match="order=3"):
        sa.sparsity(band, np.ones(4), order=3)


@pytest.mark.parametrize("seed", range(20))
def test_groups_hold_every_column_once_and_share_no_row(seed):
    generator = np.random.default_rng(seed)
    pattern = random_pattern(generator)
    dense = pattern.toarray()
    for columns in (None, generator.permutation(pattern.shape[1])[: pattern.shape[1] // 2]):
        groups = pattern.groups(columns)
        wanted = range(pattern.shape[1]) if columns is None else columns
        assert sorted(np.concatenate(groups).tolist() if groups else []) == sorted(wanted)
        assert all(dense[:, group].sum(axis=1).max() <= 1 for group in groups)


def test_a_band_needs_as_many_groups_as_it_is_wide():
    assert len(sa.sparsity(band, np.zeros(50)).groups()) == 3


@pytest.mark.parametrize("seed", range(5))
def test_saved_patterns_come_back_and_scipy_reads_them(seed, tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    pattern = random_pattern(np.random.default_rng(seed))
    path = tmp_path / "pattern.mtx"
    path.write_text("what was here before")
    pattern.save(path)
    assert sa.SparsityPattern.load(path) == pattern
    assert np.array_equal(scipy_io.mmread(path, spmatrix=False).toarray().astype(bool), pattern.toarray())
    assert [file.name for file in tmp_path.iterdir()] == ["pattern.mtx"]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "pattern.mtx"
    pattern_of((0, 0), shape=(1, 1)).save(path)
    monkeypatch.setattr("os.replace", lambda source, target: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pattern_of((1, 1), shape=(2, 2)).save(path)
    assert sa.SparsityPattern.load(path).shape == (1, 1)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n2 2 1\n1 1\n",
        "%%MatrixMarket matrix coordinate pattern general\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n0 1\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 5\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 x\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2\n1 1\n",
        "caf\u00e9",
    ],
)
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "pattern.mtx"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sa.errors.ArgumentError, match=r"pattern\.mtx is no file of a sparsity pattern"):
        sa.SparsityPattern.load(path)


def test_a_pattern_prints_itself_in_the_width_of_the_terminal(monkeypatch):
    pattern = sa.sparsity(band, np.zeros(200))
    for width in (20, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = str(pattern).splitlines()
        assert len(lines[0]) == width
        assert len({len(line) for line in lines}) == 1
    assert repr(pattern) == "<SparsityPattern 198x200, 594 non-zeros, density 0.015, coo>"


@pytest.mark.parametrize("seed", range(10))
def test_every_dot_is_a_block_with_an_entry(seed):
    """The picture is read back, dot by dot."""
    pattern = random_pattern(np.random.default_rng(seed))
    for width in (3, 72):
        scale = max(1, -(-pattern.shape[1] // (2 * width)))
        lines = spy(pattern.rows, pattern.columns, pattern.shape, width=width).splitlines()
        dots = {(row // scale, column // scale) for row, column in zip(pattern.rows, pattern.columns, strict=True)}
        bits = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1)]
        read = {
            (4 * y + bits[k][0], 2 * x + bits[k][1])
            for y, line in enumerate(lines)
            for x, cell in enumerate(line)
            for k in range(8)
            if ord(cell) - 0x2800 >> k & 1
        }
        assert read == dots
        assert max(map(len, lines)) <= width
