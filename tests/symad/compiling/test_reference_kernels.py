"""Reference kernels do not grow: operations, lines of IR and bytes of machine code are those of a committed file."""

from __future__ import annotations

from benchmarks import counts

UPDATE = "if this is wanted: python -m benchmarks.counts --update, and commit benchmarks/counts.json\n"


def test_reference_kernels_have_the_counts_of_the_file() -> None:
    changed = counts.compare(counts.count(), counts.load())
    assert not changed, UPDATE + "\n".join(changed)


def test_a_kernel_that_grows_or_shrinks_is_reported() -> None:
    kept = {"operations": {"f": {"operations": 4}}, "written": {"here": {"f": {"IR lines": 9, "code bytes": 70}}}}
    grown = counts.Found("here", {"f": {"operations": 4}}, {"f": {"IR lines": 10, "code bytes": 60}})
    assert counts.compare(grown, kept) == ["f: IR lines have grown, 9 -> 10", "f: code bytes have shrunk, 70 -> 60"]


def test_elsewhere_only_operations_are_compared() -> None:
    kept = {"operations": {"f": {"operations": 4}}, "written": {"here": {"f": {"IR lines": 9}}}}
    assert counts.compare(counts.Found("elsewhere", {"f": {"operations": 4}}, {"f": {"IR lines": 12}}), kept) == []
    assert counts.compare(counts.Found("elsewhere", {"f": {"operations": 5}}, {}), kept) != []
