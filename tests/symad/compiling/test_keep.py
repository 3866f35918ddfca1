"""Kernels in files and pickles: what comes back computes the same bits, takes and returns the same containers."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import dataclasses
import hashlib
import math
import multiprocessing
import os
import pickle
import pickletools
import subprocess
import sys
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen
import symad as sa
from codegen import ArgumentError, Kernel
from codegen.machine.storage.portable import encode
from codegen.sealed import write_kernel

Pair = namedtuple("Pair", "first second")
POINT = np.array([0.7, -1.3, 2.1])


@dataclasses.dataclass
class Layer:
    """A dataclass that other processes can import."""

    weight: Any
    bias: Any
    name: str = "dense"


def rosenbrock(x: Any) -> Any:
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def bits(value: Any) -> Any:
    """A result with every number as its bits."""
    if isinstance(value, dict):
        return type(value), [(key, bits(part)) for key, part in value.items()]
    if isinstance(value, tuple | list):
        return type(value), [bits(part) for part in value]
    if isinstance(value, Layer):
        return Layer, bits(vars(value))
    return value if value is None or isinstance(value, str) else (np.shape(value), np.asarray(value).tobytes())


KERNELS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "a number": (lambda x, y: np.sin(x) * y + 1 / 3, (0.3, 0.7), {}),
    "a gradient": (sa.grad(rosenbrock), (POINT,), {}),
    "a dense Hessian": (sa.hessian(rosenbrock), (POINT,), {}),
    "a sweep": (sa.hessian(lambda x: np.prod(np.sin(x))), (np.linspace(0.1, 0.9, 9),), {"strategy": "sweep"}),
    "a sparse Hessian": (sa.hessian(rosenbrock, sparse=True), (POINT,), {}),
    "a piecewise function": (lambda x: np.where(x > 0, np.sqrt(abs(x)), -x), (POINT,), {}),
    "a kernel that improves itself": (sa.grad(rosenbrock), (POINT,), {"tier": "auto"}),
    "other options": (sa.grad(rosenbrock), (POINT,), {"tier": "fast", "fma": False, "accuracy": "fast"}),
    "several results": (lambda x: (x.sum(), x * x), (POINT,), {}),
    "nothing in, nothing out": (lambda: (), (), {}),
    "a dict": (lambda p: {"b": p["a"] * 2, "a": [p["a"], None, (p["b"][0],)]}, ({"a": POINT, "b": [1.5, None]},), {}),
    "numbers as keys": (lambda p: {1: p[2], 0: p[1.5]}, ({2: 0.1, 1.5: 0.2},), {}),
}
PICKLED_ONLY: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "a named tuple": (lambda p: Pair(p.second, p.first), (Pair(0.3, POINT),), {}),
    "a dataclass": (lambda p: Layer(p.bias, p.weight, p.name), (Layer(POINT, 0.5),), {}),
    "an ordered dict": (lambda p: OrderedDict(z=p["a"], a=p["a"]), (OrderedDict(a=0.5),), {}),
}


def compiled(name: str) -> tuple[Kernel, tuple[Any, ...]]:
    function, arguments, options = (KERNELS | PICKLED_ONLY)[name]
    return sa.compile(function, *arguments, **options), arguments


@pytest.mark.parametrize("name", KERNELS)
def test_a_saved_kernel_computes_the_same_bits(name: str, tmp_path: Path) -> None:
    kernel, arguments = compiled(name)
    kernel.save(tmp_path / "kernel.symad")
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.symad"]
    again = sa.load(tmp_path / "kernel.symad")
    assert bits(again(*arguments)) == bits(kernel(*arguments))
    assert again.options == kernel.options
    assert again.program == kernel.program
    assert again.sparsity == kernel.sparsity
    assert repr(again) == repr(kernel)


@pytest.mark.parametrize("name", [*KERNELS, *PICKLED_ONLY])
def test_a_pickled_kernel_computes_the_same_bits(name: str) -> None:
    kernel, arguments = compiled(name)
    again = pickle.loads(pickle.dumps(kernel))
    assert bits(again(*arguments)) == bits(kernel(*arguments))
    assert type(again) is type(kernel)
    assert again.options == kernel.options


@pytest.mark.parametrize("name", ["a sparse Hessian", "a dict", "a dataclass"])
def test_copies_are_the_kernel_itself(name: str) -> None:
    """It has no state."""
    kernel, _ = compiled(name)
    assert copy.copy(kernel) is copy.deepcopy(kernel) is kernel
    assert copy.deepcopy({"a": kernel})["a"] is kernel


def test_results_of_a_saved_sparse_kernel_are_scipy_arrays(tmp_path: Path) -> None:
    kernel, arguments = compiled("a sparse Hessian")
    kernel.save(tmp_path / "h")
    assert (sa.load(tmp_path / "h").scipy(*arguments) != kernel.scipy(*arguments)).nnz == 0


def test_a_lambdified_function_is_pickled() -> None:
    x, y = sp.symbols("x y")
    function = codegen.lambdify([x, y], [x + y, sp.Matrix([[x, y]])])
    assert bits(pickle.loads(pickle.dumps(function))(1.5, 2.5)) == bits(function(1.5, 2.5))


def test_a_pickle_holds_data_and_one_function_of_ours() -> None:
    """Nothing of SymPy, and no code: what a pickle may look up is our own function that reads portable bytes."""
    dumped = pickle.dumps(compiled("a sparse Hessian")[0])
    looked_up = [argument for code, argument, _ in pickletools.genops(dumped) if code.name in ("GLOBAL", "INST")]
    texts = [argument for _, argument, _ in pickletools.genops(dumped) if isinstance(argument, str)]
    assert looked_up == []
    assert texts == ["codegen.machine.build", "revive"]


def work(kernel: Any, point: Any) -> tuple[int, bytes]:
    return os.getpid(), np.asarray(kernel(point)).tobytes()


def test_kernels_go_to_other_processes() -> None:
    """As arguments of a pool's functions, which is what joblib and multiprocessing do, too."""
    kernel, (point,) = compiled("a dense Hessian")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = list(pool.map(work, [kernel] * 2, [point] * 2))
    assert [result for _, result in found] == [kernel(point).tobytes()] * 2
    assert os.getpid() not in [process for process, _ in found]


@pytest.mark.parametrize("name", PICKLED_ONLY)
def test_files_hold_no_classes(name: str, tmp_path: Path) -> None:
    kernel, _ = compiled(name)
    with pytest.raises(ArgumentError, match=r"(arguments|result) with a container of type .*; pickle the kernel"):
        kernel.save(tmp_path / "kernel")
    assert list(tmp_path.iterdir()) == []


def test_keys_of_dicts_in_files_are_plain(tmp_path: Path) -> None:
    kernel = sa.compile(lambda p: p[("a", 1)], {("a", 1): 0.5})
    with pytest.raises(ArgumentError, match="arguments with a container of type dict with other keys than texts"):
        kernel.save(tmp_path / "kernel")


def test_functions_of_the_users_own_are_not_saved(tmp_path: Path) -> None:
    program = codegen.program_from_sympy([sp.Symbol("x")], [sp.Symbol("x") + 1])
    kernel = codegen.compile_program(program, unpack=lambda arrays: {"y": arrays[0]})
    assert kernel(1.0) == {"y": 2.0}
    with pytest.raises(ArgumentError, match=r"result that a function of its own takes apart.*; pickle the kernel"):
        kernel.save(tmp_path / "kernel")


def test_codegen_alone_asks_for_symad_where_containers_are(tmp_path: Path) -> None:
    compiled("a dict")[0].save(tmp_path / "kernel")
    with pytest.raises(ArgumentError, match=r"a kernel that takes or returns containers; load it with symad\.load"):
        codegen.load_kernel(tmp_path / "kernel")
    compiled("a gradient")[0].save(tmp_path / "kernel")
    assert codegen.load_kernel(tmp_path / "kernel")(POINT).shape == (3,)


def test_a_structure_is_still_checked(tmp_path: Path) -> None:
    compiled("a dict")[0].save(tmp_path / "kernel")
    with pytest.raises(ArgumentError, match="arguments of structure"):
        sa.load(tmp_path / "kernel")({"a": POINT})
    with pytest.raises(ArgumentError, match="keyword 'q'"):
        sa.load(tmp_path / "kernel")(q=1.0)


def test_arguments_in_containers_are_given_by_the_names_that_the_signature_has() -> None:
    kernel = sa.compile(lambda p, t: {"twice": 2 * p["a"], "sum": p["a"] + t}, {"a": 1.0}, 0.0)
    assert kernel(t=3.0, p={"a": 2.0}) == kernel({"a": 2.0}, 3.0) == {"twice": 4.0, "sum": 5.0}
    assert kernel.batch(p={"a": np.array([1.0, 2.0])}, t=1.0)["sum"].tolist() == [2.0, 3.0]


HOSTILE: list[Any] = [
    [], 5, {}, {"arguments": None}, {"arguments": 3, "result": None}, {"arguments": {"tuple": [0, 0]}, "result": None},
    {"arguments": {"set": [0]}, "result": None}, {"arguments": {"__import__": ["os"]}, "result": None},
    {"arguments": {"tuple": [{"dict": [["a", 0], ["a", 0]]}]}, "result": None},
    {"arguments": {"tuple": [{"dict": [[["a"], 0]]}]}, "result": None},
    {"arguments": {"tuple": [{"dict": [0]}]}, "result": None}, {"arguments": {"tuple": ["os"]}, "result": None},
    {"arguments": None, "result": {"list": [0, 0]}}, {"arguments": None, "result": {"list": 0}},
    {"arguments": {"tuple": [0], "list": [0]}, "result": None},
    {"arguments": [0], "result": None}, {"arguments": "os", "result": None}, {"arguments": None, "result": True},
]  # fmt: skip


@pytest.mark.parametrize("containers", HOSTILE, ids=range(len(HOSTILE)))
def test_containers_that_symad_never_wrote_are_refused(containers: Any, tmp_path: Path) -> None:
    kernel = compiled("a gradient")[0]
    write_kernel(tmp_path / "kernel", encode(kernel.program, kernel.options, containers))
    with pytest.raises(ArgumentError, match=r"no file that can be loaded: its containers are none"):
        sa.load(tmp_path / "kernel")


def test_a_large_program_is_not_compiled_against_the_limits(tmp_path: Path) -> None:
    compiled("a gradient")[0].save(tmp_path / "kernel")
    assert sa.load(tmp_path / "kernel", max_ops=10**4, max_seconds=100)(POINT).shape == (3,)
    with pytest.raises(sa.errors.LimitError, match="max_ops is 5"):
        sa.load(tmp_path / "kernel", max_ops=5)
    with pytest.raises(sa.errors.LimitError, match="max_seconds is 1e-09"):
        sa.load(tmp_path / "kernel", max_seconds=1e-9)


def test_deep_containers_crash_nothing(tmp_path: Path) -> None:
    kernel = compiled("a gradient")[0]
    deep: Any = 0
    for _ in range(400):
        deep = {"tuple": [deep]}
    write_kernel(tmp_path / "kernel", encode(kernel.program, kernel.options, {"arguments": deep, "result": None}))
    with contextlib.suppress(ArgumentError):  # as deep as Python is willing to go
        sa.load(tmp_path / "kernel")


@pytest.mark.parametrize("code", [False, True])
def test_the_header_is_as_the_page_has_it(code: bool, tmp_path: Path) -> None:
    """docs/keep.md: the length of the program, and the SHA-256 of what is before and behind these 32 bytes of it."""
    sa.compile(lambda x: np.sum(np.sin(x)), np.ones(3)).save(tmp_path / "kernel", code=code)
    data = (tmp_path / "kernel").read_bytes()
    length = int.from_bytes(data[24:32], "little")
    assert code or length == len(data)
    assert data[32:64] == hashlib.sha256(data[:32] + data[64:length]).digest()


def test_files_that_are_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"cannot read .*nowhere.*: No such file or directory; check the path"):
        sa.load(tmp_path / "nowhere")
    with pytest.raises(ArgumentError, match=r"cannot read .*: Is a directory"):
        sa.load(tmp_path)
    with pytest.raises(ArgumentError, match=r"cannot write .*: No such file or directory; choose another path"):
        compiled("a number")[0].save(tmp_path / "no" / "folder" / "kernel")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ArgumentError, match="text: no file that can be loaded: it does not begin as symad's files do"):
        sa.load(str(tmp_path / "text"))


@pytest.mark.parametrize("path", ["", ".", "a\0b", 3, None, b"kernel"], ids=ascii)
def test_paths_that_are_none_are_refused(path: Any) -> None:
    with pytest.raises(ArgumentError, match="cannot write"):
        compiled("a number")[0].save(path)
    with pytest.raises(ArgumentError, match="cannot read"):
        sa.load(path)


@pytest.mark.parametrize("key", [math.inf, -math.inf, math.nan])
def test_keys_that_no_file_can_hold_are_refused(key: float, tmp_path: Path) -> None:
    kernel = sa.compile(lambda p: p[key] * 2, {key: 1.0})
    with pytest.raises(ArgumentError, match="other keys than texts and finite numbers"):
        kernel.save(tmp_path / "kernel")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kernel"
    compiled("a number")[0].save(path)
    before = path.read_bytes()

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ArgumentError, match=r"cannot write .*: No space left on device"):
        compiled("a gradient")[0].save(path)
    assert (path.read_bytes(), [file.name for file in tmp_path.iterdir()]) == (before, ["kernel"])


def test_a_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    compiled("a number")[0].save(tmp_path / "kernel")
    assert (tmp_path / "kernel").stat().st_mode == (tmp_path / "text").stat().st_mode


def test_a_loaded_kernel_is_cached(tmp_path: Path) -> None:
    compiled("a dict")[0].save(tmp_path / "kernel")
    first, second = (sa.load(tmp_path / "kernel", cache=tmp_path / "cache") for _ in range(2))
    assert (first.stats.cached, second.stats.cached) == (False, True)
    arguments = KERNELS["a dict"][1]
    assert bits(first(*arguments)) == bits(second(*arguments))


@pytest.mark.parametrize("name", ["a sweep", "a sparse Hessian", "a dict", "other options"])
def test_every_kind_of_kernel_is_cached(name: str, tmp_path: Path) -> None:
    function, arguments, options = KERNELS[name]
    first, second = (sa.compile(function, *arguments, cache=tmp_path, **options) for _ in range(2))
    assert (first.stats.cached, second.stats.cached) == (False, True)
    assert bits(first(*arguments)) == bits(second(*arguments))


def test_jitted_functions_use_the_cache(tmp_path: Path) -> None:
    plain = sa.jit(rosenbrock)
    for _ in range(2):
        function = sa.jit(rosenbrock, cache=tmp_path)
        for point in (POINT, POINT[:2]):
            assert function(point) == plain(point)
    (first, second) = codegen.machine.storage.cache.Cache(tmp_path).entries()
    assert (first.hits, second.hits) == (1, 1)


def test_files_are_loaded_without_scipy(tmp_path: Path) -> None:
    """And a kernel that calls a function of SciPy says what is missing."""
    compiled("a dict")[0].save(tmp_path / "plain")
    x = sp.Symbol("x")
    codegen.lambdify([x], sp.besselj(2, x)).kernel.save(tmp_path / "bessel")
    source = f"""
import sys
sys.modules["scipy"] = None
import numpy as np, symad as sa
print(sa.load({str(tmp_path / "plain")!r})({{"a": np.array([0.7, -1.3, 2.1]), "b": [1.5, None]}})["b"])
try:
    sa.load({str(tmp_path / "bessel")!r})
except sa.errors.LoweringError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "[ 1.4 -2.6  4.2]"
    assert "pip install symad[special]" in done.stdout
