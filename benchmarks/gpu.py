"""Derivatives at many points on a GPU: `python -m benchmarks.gpu [--counts ...] [--problems ...] [--out FILE]`.

Each row: our kernel on arrays that are on the GPU and on NumPy arrays, JAX's `jit(vmap(...))` on the same GPU, the
scheme of CusADi, and our batch on this machine's processor. CusADi (Jeon and others, IEEE Robotics and Automation
Letters 2024) writes CUDA in which every value goes through an array in global memory; what stands in for it is our own
code written in that way. Results are compared first, those of many points with `Kernel.batch`, bit for bit.

Times on the GPU are between two of its events, around calls that follow one another; medians of `ROUNDS`.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import symad as sa
from benchmarks.models import reprojection_error, rigid_body, spherical_harmonics
from benchmarks.problems import (
    Problem,
    chained_rosenbrock,
    cluster,
    lennard_jones_energy,
    make_log_sum_exp,
    make_network,
)
from benchmarks.tables import number, percent, table
from codegen.emission.emit import Form, emit
from codegen.emission.schedule import schedule
from codegen.engine import device_assembly
from codegen.ir.region import RolledProgram
from codegen.lowering.passes import prepare
from codegen.machine.calls.kernel import Kernel
from codegen.machine.gpu import driver
from codegen.machine.gpu.device_arrays import DeviceArray
from codegen.machine.gpu.device_entry import ENTRY, KernelEntry
from codegen.machine.gpu.device_text import called_text
from codegen.machine.gpu.gpu_kernel import GpuKernel

COUNTS = (10**3, 10**4, 10**5, 10**6, 10**7)
ROUNDS = 7
MEMORY = 40 << 30  # bytes of arguments and results; rows that need more are left out
HOST_MEMORY = 1 << 30  # the same for arrays that are copied
JAX_MEMORY, INTERMEDIATE = 80 << 30, 12  # it keeps so many arrays as large as the result
COMPARED = 10**6
DOUBLES_PER_CYCLE = {"sm_80": 32, "sm_90": 64, "sm_100": 64}  # fused multiply-adds of float64 to a multiprocessor


def make_problems() -> list[Problem]:
    """Return the problems: eight Hessians, a gradient and three Jacobians."""
    rng = np.random.default_rng(1)
    seen = np.array([0.1, -0.2, 0.3, 0.2, -0.1, 5.0, 400.0, -0.1, 0.05, 0.4, -0.3, 1.2])
    chain, atoms = chained_rosenbrock, lennard_jones_energy
    return [
        Problem("rosenbrock2", "Hessian, Rosenbrock, n = 2", chain, np.array([-1.2, 1.0]), 0.1),
        Problem("rosenbrock10", "Hessian, Rosenbrock, n = 10", chain, rng.uniform(-1, 1, 10), 0.5),
        Problem("rosenbrock100", "sparse Hessian, Rosenbrock, n = 100", chain, rng.uniform(-1, 1, 100), 0.5,
                sparse=True),
        Problem("lj4", "Hessian, Lennard-Jones, 4 atoms", atoms, cluster(4), 0.03),
        Problem("lj10", "Hessian, Lennard-Jones, 10 atoms", atoms, cluster(10), 0.03),
        Problem("mlp4", "Hessian, tanh network 4-8-1", make_network((4, 8, 1)), rng.normal(size=4), 0.5),
        Problem("mlp8", "Hessian, tanh network 8-16-16-1", make_network(), rng.normal(size=8), 0.5),
        Problem("logsumexp20", "Hessian, log-sum-exp, n = 20", make_log_sum_exp(), rng.normal(size=20), 0.5),
        Problem("lj20gradient", "gradient, Lennard-Jones, 20 atoms", atoms, cluster(20), 0.03, "gradient"),
        Problem("harmonics8", "Jacobian, harmonics of degree 1 to 8", spherical_harmonics, np.array([0.3, -0.5, 0.7]),
                0.2, "jacobian"),
        Problem("bundle", "Jacobian, bundle adjustment", reprojection_error, seen, 0.05, "jacobian"),
        Problem("body", "Jacobian, rigid body of 12 states and 4 rotors", rigid_body, rng.uniform(0.1, 0.9, 16), 0.3,
                "jacobian"),
    ]  # fmt: skip


@dataclass
class Row:
    """What was measured of one problem: seconds by the number of points."""

    problem: str
    bytes: int  # read and written for a point
    operations: int  # of a point; a fused multiply-add is one
    lines: int  # of PTX
    build: float  # seconds, from the compiled kernel to PTX
    load: float  # seconds of the driver, PTX to machine code
    resources: dict[str, int] = field(default_factory=dict)
    compared: int = 0  # points with the same bits as Kernel.batch
    different: int = 0
    resident: dict[int, float] = field(default_factory=dict)
    copied: dict[int, float] = field(default_factory=dict)
    jax: dict[int, float] = field(default_factory=dict)
    scheme: dict[int, float] = field(default_factory=dict)
    processor: dict[int, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def derivative(problem: Problem) -> Any:
    """Return what is asked of symad."""
    if problem.kind == "hessian":
        return sa.hessian(problem.function, sparse="lower") if problem.sparse else sa.hessian(problem.function)
    return {"gradient": sa.grad, "jacobian": sa.jacobian}[problem.kind](problem.function)


def measure(problem: Problem, counts: list[int], peers: list[str]) -> Row:
    """Build, compare and time one problem."""
    kernel = sa.compile(derivative(problem), problem.point, roll="never")  # loops are for larger ones
    start = time.perf_counter()
    gpu = kernel.gpu()
    built = time.perf_counter()
    resources = gpu.resources
    loaded = time.perf_counter()
    moved = 8 * (problem.point.size + sum(output.size for output in kernel.program.outputs))
    row = Row(problem.name, moved, kernel.stats.executed, gpu.ptx.count("\n"), built - start, loaded - built, resources)
    compare(problem, kernel, gpu, row)
    jax = mapped(problem) if "jax" in peers else None
    scheme = through_memory(kernel) if "scheme" in peers else None
    for count in counts:
        if moved * count > MEMORY:
            row.notes.append(f"{count} points need {moved * count / 2**30:.0f} GiB")
            continue
        points = np.tile(problem.points(min(count, 10**5)), (-(-count // 10**5), 1))
        given = on_device(driver.device(0), points)
        resident(row, gpu, scheme, given)
        dense = 8 * count * problem.point.size ** (2 if problem.kind == "hessian" else 1)
        if jax is not None and dense * INTERMEDIATE > JAX_MEMORY:
            row.notes.append(f"{count} points: JAX would need more than {JAX_MEMORY >> 30} GiB")
        elif jax is not None:
            timed(row, row.jax, count, jax, given)
        if moved * count <= HOST_MEMORY:
            row.copied[count] = best(lambda points=points: gpu(points))
    slowest = min(10**5, max(counts))
    points, threads = problem.points(slowest), os.cpu_count() or 1
    row.processor[slowest] = best(lambda: kernel.batch(points, threads=threads))
    return row


def resident(row: Row, gpu: GpuKernel, scheme: Callable[..., float] | None, given: DeviceArray) -> None:
    """Time our kernel, and the scheme of CusADi, on points that are on the GPU."""
    owner, count, result = driver.device(0), len(given), gpu(given)
    row.resident[count] = seconds(owner, lambda: gpu(given, out=result))
    if scheme is not None:
        timed(row, row.scheme, count, scheme, owner, given, result, count)


def timed(row: Row, into: dict[int, float], count: int, run: Callable[..., float], *arguments: Any) -> None:
    """Keep a peer's time, or why there is none."""
    try:
        into[count] = run(*arguments)
    except Exception as error:  # whatever a peer raises, most often for want of memory
        row.notes.append(f"{count} points: {type(error).__name__}: {str(error)[:120]}")


def compare(problem: Problem, kernel: Kernel, gpu: GpuKernel, row: Row) -> None:
    """Count the points whose results have the bits of the processor's, on many random points."""
    for first in range(0, COMPARED, 10**5):
        points = replace(problem, point=problem.point).points(10**5)
        points = points * (1 + 1e-3 * first / COMPARED)
        ours, theirs = gpu(points), kernel.batch(points, threads=os.cpu_count() or 1)
        same = (ours.view(np.int64) == theirs.view(np.int64)) | (np.isnan(ours) & np.isnan(theirs))
        row.different += int((~same).reshape(len(points), -1).any(axis=1).sum())
        row.compared += len(points)


def on_device(owner: driver.Device, array: Any) -> DeviceArray:
    """Return a copy of an array in the memory of the GPU."""
    memory = driver.Memory(owner, array.nbytes, "points")
    with owner.current():
        driver.copy_in(memory.address, array.ctypes.data, array.nbytes, 0)
        driver.wait(0)
    return DeviceArray(memory, array.shape, array.dtype, 0)


def seconds(owner: driver.Device, run: Callable[[], object]) -> float:
    """Return the seconds of one call, by the GPU's own clock."""
    with owner.current():
        run()
        driver.wait(0)
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            driver.call("cuEventCreate", ctypes.byref(event), 0)
        found, repeat = [], 1
        while len(found) < ROUNDS:
            driver.call("cuEventRecord", events[0], None)
            for _ in range(repeat):
                run()
            driver.call("cuEventRecord", events[1], None)
            driver.call("cuEventSynchronize", events[1])
            taken = ctypes.c_float()
            driver.call("cuEventElapsedTime", ctypes.byref(taken), *events)
            if taken.value < 5.0 and repeat < 1000:
                repeat *= 4
                continue
            found.append(taken.value / 1e3 / repeat)
    return median(found)


def best(run: Callable[[], object]) -> float:
    """Return the seconds of a call that ends when its results are there."""
    run()
    found = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def mapped(problem: Problem) -> Callable[[DeviceArray], float]:
    """Return what times JAX on an array of the GPU."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)

    def function(x: Any) -> Any:
        return problem.function(x, jax.numpy)

    kinds = {
        "hessian": jax.hessian,
        "gradient": jax.grad,
        "jacobian": jax.jacfwd if problem.point.size < 4 else jax.jacrev,
    }
    if problem.kind == "jacobian":
        wide = np.asarray(problem.function(problem.point)).size < problem.point.size
        kinds["jacobian"] = jax.jacrev if wide else jax.jacfwd
    compiled = jax.jit(jax.vmap(kinds[problem.kind](function)))

    def run(given: DeviceArray) -> float:
        points = jax.dlpack.from_dlpack(given)
        compiled(points).block_until_ready()
        found = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            results = [compiled(points) for _ in range(3)]
            results[-1].block_until_ready()
            found.append((time.perf_counter() - start) / 3)
            del results
        return median(found)

    return run


def through_memory(kernel: Kernel) -> Callable[..., float] | None:
    """Return what times our code with every value in global memory, as CusADi's is."""
    owner = driver.device(0)
    prepared = None if isinstance(kernel.program, RolledProgram) else prepare(kernel.program, kernel.options)
    if prepared is None or prepared.program.seeded:
        return None  # loops and sweeps have no such form
    form = Form(formulas=True, device=True)
    order = schedule(prepared.fused, chunk=1)
    emitted = emit(prepared.program, prepared.fused, order, form)
    slots = max(order.workspace, 1)
    local = f"%w=alloca [{8 * slots} x i8],align 64"
    given = "%w.at=getelementptr ptr,ptr %out,i64 1\n%w=load ptr,ptr %w.at,align 8"
    emitted.functions[0] = emitted.functions[0].replace(local, given)  # where an output more would be
    text = called_text(
        kernel.program.name, emitted, KernelEntry(1, 2, "double", 8), ["%status=call i32 @kernel(ptr %in,ptr %out)"]
    )
    module = driver.Module(owner, device_assembly(text, owner.architecture), ENTRY)

    def run(owner: driver.Device, given: DeviceArray, result: DeviceArray, count: int) -> float:
        memory = driver.Memory(owner, 8 * slots * count, "values")
        places = [(array.__cuda_array_interface__["data"][0], array.size // count) for array in (given, result)]
        return seconds(owner, lambda: module.launch(count, [*places, (memory.address, slots)], 0, "CusADi's scheme"))

    return run


def bandwidth(owner: driver.Device) -> float:
    """Return bytes read and written a second where the GPU copies from one place of its memory to another."""
    size = 1 << 30
    source, target = (driver.Memory(owner, size, "a copy") for _ in range(2))
    arguments = driver.Pointer(target.address), driver.Pointer(source.address), ctypes.c_size_t(size), None
    return 2 * size / seconds(owner, lambda: driver.call("cuMemcpyDtoDAsync_v2", *arguments))


def report(rows: list[Row], titles: dict[str, str], owner: driver.Device, rate: float, clock: float) -> str:
    """Return all of it as Markdown."""
    peak = owner.processors * DOUBLES_PER_CYCLE.get(owner.architecture, 32) * clock
    lines = []
    for row in rows:
        for count, taken in row.resident.items():
            share_of = row.bytes * count / taken / rate, row.operations * count / taken / peak
            cells = [titles[row.problem], f"{count:.0e}", number(1e9 * taken / count)]
            cells += [ratio(row.jax.get(count), taken), ratio(row.scheme.get(count), taken)]
            cells += [ratio(row.copied.get(count), taken), *map(percent, share_of)]
            lines.append(cells)
    header = ["problem", "points", "ns a point", "JAX / ours", "scheme / ours", "NumPy arrays / ours", "% of bandwidth",
              "% of operations"]  # fmt: skip
    facts = [
        [titles[row.problem], str(row.lines), number(row.build), number(row.load), str(row.resources["registers"]),
         str(row.resources["local bytes"]), f"{row.different} of {row.compared}",
         ", ".join(f"{1e9 * taken / count:.3g}" for count, taken in row.processor.items())]
        for row in rows
    ]  # fmt: skip
    made = ["problem", "lines of PTX", "s to PTX", "s to load", "registers", "local bytes", "points that differ",
            "processor, ns a point"]  # fmt: skip
    title = f"{owner.name}: {rate / 1e12:.2f} TB/s copied, {peak / 1e12:.1f} T operations of float64 a second at most"
    notes = [f"- {titles[row.problem]}: {note}" for row in rows for note in row.notes]
    return "\n\n".join([title, table(header, lines), table(made, facts), "\n".join(notes)])


def ratio(other: float | None, ours: float) -> str:
    """Return how many times longer another one takes."""
    return "-" if other is None else number(other / ours)


def main() -> int:
    """Measure, print the report, and keep it where asked; exit status 1 where bits differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--counts", type=float, nargs="*", default=COUNTS)
    parser.add_argument("--problems", nargs="*", default=[])
    parser.add_argument("--peers", nargs="*", default=["jax", "scheme"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    problems = [one for one in make_problems() if not options.problems or one.name in options.problems]
    owner = driver.device(0)
    rate, clock = bandwidth(owner), 1e3 * driver.clock(0)
    rows: list[Row] = []
    for problem in problems:
        rows.append(measure(problem, [int(count) for count in options.counts], options.peers))
        text = report(rows, {one.name: one.title for one in problems}, owner, rate, clock)
        for name in ("resident", "copied", "jax", "scheme"):
            taken = {count: f"{1e9 * each / count:.3g} ns" for count, each in getattr(rows[-1], name).items()}
            print(problem.name, name, taken, flush=True)
        if options.out is not None:
            options.out.with_suffix(".md").write_text(text)
            options.out.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(text)
    return int(any(row.different for row in rows))


if __name__ == "__main__":
    sys.exit(main())
