"""Section "peak": what this machine can do at most, measured with our own probes in LLVM IR.

Fused multiply-adds on twelve independent chains, in numbers, vectors of four and of eight; and a triad
`a = b + s * c` over arrays far larger than the caches. A fused multiply-add counts as two operations, a triad as
24 bytes for each element (what it reads and writes, without the line that a store fetches first).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.session import Session
from benchmarks.tables import table
from codegen.engine import compile_text

CHAINS = 12
WIDTHS = (1, 4, 8)
STEPS = 2_000_000
ELEMENTS = 2**23  # 64 MiB an array
REPETITIONS = 7


def multiply_adds(width: int) -> str:
    """Return IR of `void peak(double *out, int64 steps)`: CHAINS fused multiply-adds in each step."""
    kind = "double" if width == 1 else f"<{width} x double>"
    suffix = "f64" if width == 1 else f"v{width}f64"
    chains = range(CHAINS)
    splat = {"a": "0.999999", "b": "0.000001"}
    value = {name: v if width == 1 else f"<{', '.join([f'double {v}'] * width)}>" for name, v in splat.items()}
    lines = [
        f"declare {kind} @llvm.fma.{suffix}({kind},{kind},{kind})",
        "define void @peak(ptr %out,i64 %steps) {",
        "begin:\n br label %loop",
        "loop:",
        " %k=phi i64 [0,%begin],[%k1,%loop]",
        *(f" %x{c}=phi {kind} [zeroinitializer,%begin],[%y{c},%loop]" for c in chains),
        *(
            f" %y{c}=call {kind} @llvm.fma.{suffix}({kind} %x{c},{kind} {value['a']},{kind} {value['b']})"
            for c in chains
        ),
        " %k1=add i64 %k,1",
        " %more=icmp ult i64 %k1,%steps",
        " br i1 %more,label %loop,label %end",
        "end:",
        f" %s0=fadd {kind} %y0,%y1",
        *(f" %s{c - 1}=fadd {kind} %s{c - 2},%y{c}" for c in chains[2:]),
        f" store {kind} %s{CHAINS - 2},ptr %out,align 8",
        " ret void\n}",
    ]
    return "\n".join(lines).replace("zeroinitializer", "0.0" if width == 1 else "zeroinitializer")


TRIAD = """
define void @peak(ptr %a,ptr %b,ptr %c,i64 %n) {
begin:
 br label %loop
loop:
 %k=phi i64 [0,%begin],[%k1,%loop]
 %pa=getelementptr double,ptr %a,i64 %k
 %pb=getelementptr double,ptr %b,i64 %k
 %pc=getelementptr double,ptr %c,i64 %k
 %vb=load <8 x double>,ptr %pb,align 8
 %vc=load <8 x double>,ptr %pc,align 8
 %sc=fmul <8 x double> %vc,<double 3.0,double 3.0,double 3.0,double 3.0,double 3.0,double 3.0,double 3.0,double 3.0>
 %va=fadd <8 x double> %vb,%sc
 store <8 x double> %va,ptr %pa,align 8
 %k1=add i64 %k,8
 %more=icmp ult i64 %k1,%n
 br i1 %more,label %loop,label %end
end:
 ret void
}
"""


def best_rate(work: Callable[[int], object], amount: float, threads: int) -> float:
    """Return the best rate of `amount` a thread, all threads at once."""
    with ThreadPoolExecutor(threads) as pool:
        rates = []
        for _ in range(REPETITIONS):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            rates.append(threads * amount / (time.perf_counter() - start))
    return max(rates)


def operations_per_second(width: int, threads: int, steps: int = STEPS) -> float:
    """Return the peak of fused multiply-adds, as operations (two each)."""
    library = compile_text(multiply_adds(width), ("peak",), {}, 2)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.addresses["peak"])
    outs = [np.zeros(8) for _ in range(threads)]
    return best_rate(lambda k: run(outs[k].ctypes.data, steps), 2.0 * CHAINS * width * steps, threads)


def bytes_per_second(threads: int, elements: int = ELEMENTS) -> float:
    """Return the bandwidth of the triad over arrays far larger than the caches."""
    library = compile_text(TRIAD, ("peak",), {}, 2)
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(library.addresses["peak"])
    arrays = [[np.ones(elements) for _ in range(3)] for _ in range(threads)]
    found = best_rate(lambda k: run(*[array.ctypes.data for array in arrays[k]], elements), 24.0 * elements, threads)
    if not all(mine[0][0] == mine[0][-1] == 4.0 for mine in arrays):
        raise AssertionError("the bandwidth probe computed something else")
    return found


def measure(threads: Sequence[int], quick: bool) -> dict[str, dict[int, float]]:
    """Return the peaks: operations per second by vector width, bytes per second, each by number of threads."""
    steps, elements = (STEPS // 10, ELEMENTS // 4) if quick else (STEPS, ELEMENTS)
    found = {f"fma{w}": {t: operations_per_second(w, t, steps) for t in threads} for w in WIDTHS}
    return {**found, "bytes": {t: bytes_per_second(t, elements) for t in threads}}


def section(session: Session) -> str:
    """Measure the peaks, which the other sections compare with."""
    session.say("peak: multiply-adds and memory")
    peaks = session.data["peak"] = measure((1, 2), session.quick)
    titles = {"fma1": "fused multiply-adds, one number", "fma4": "four numbers (256 bits)",
              "fma8": "eight numbers (512 bits, or two halves)", "bytes": "memory, triad"}  # fmt: skip
    rows = []
    for name, title in titles.items():
        unit = "GB/s" if name == "bytes" else "Gop/s"
        rows.append([title, *(f"{peaks[name][threads] / 1e9:.3g} {unit}" for threads in (1, 2))])
    return table(("probe", "1 thread", "2 threads"), rows)
