"""The kernel of a rolled program: its constants, its workspace, and the loops one after the other."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from codegen.emission.emit import MEMORY, Emitted
from codegen.emission.frame import workspace
from codegen.emission.lanes import Lanes
from codegen.lowering.fuse import fuse
from codegen.lowering.lower import lower
from codegen.regions.loops import loop
from codegen.regions.region import RolledProgram, regions_of

STACK_BYTES = 65536


def emit_rolled(rolled: RolledProgram, lanes: Lanes, *, fma: bool = True, fast: bool = False) -> Emitted:
    """Return the IR of `i32 @kernel(in, out)`."""
    pointers, constants, size = _buffers(rolled)
    emitted = Emitted([], constants, {found.name: found for found in MEMORY})
    for number, (region, _) in enumerate(regions_of(rolled.steps)):
        lowered = lower(region.body)
        lowered = fuse(lowered) if fma else lowered
        emitted += loop(f"region{number}", region, lowered, pointers, lanes, fast=fast)
    large = 8 * size > STACK_BYTES
    lines = ["define i32 @kernel(ptr noalias %in,ptr noalias %out) nounwind {"]
    for number, output in enumerate(rolled.outputs):
        lines += [f"%e{number}=getelementptr ptr,ptr %out,i64 {number}", f"%o{number}=load ptr,ptr %e{number},align 8"]
        lines.append(f"call void @llvm.memset.p0.i64(ptr %o{number},i8 0,i64 {8 * output.size},i1 false)")
    lines += workspace(max(8 * size, 8), large)
    lines += [f"call void @llvm.memset.p0.i64(ptr %w,i8 0,i64 {8 * size},i1 false)"] if size else []
    lines += [f"call void @region{number}(ptr %in,ptr %out,ptr %w)" for number in range(len(rolled.steps))]
    lines += ["call void @free(ptr %w)"] if large else []
    return emitted + Emitted([], ["\n".join([*lines, "ret i32 0", "}"])], {})


def _buffers(rolled: RolledProgram) -> tuple[list[str], list[str], int]:
    """Return how each buffer is found, the constants, and how many numbers the workspace has."""
    pointers: list[str] = []
    constants: list[str] = []
    inputs = outputs = size = 0
    for number, buffer in enumerate(rolled.buffers):
        if buffer.kind == "input":
            pointers.append(f"%in {inputs}")
            inputs += 1
        elif buffer.kind == "output":
            pointers.append(f"%out {outputs}")
            outputs += 1
        elif buffer.values is not None:
            constants.append(
                f"@constants{number}=internal constant [{buffer.size} x double] [{_hex(buffer.values.tolist())}]"
            )
            pointers.append(f"@constants{number}")
        else:
            pointers.append(f"%work {size}")
            size += buffer.size
    return pointers, constants, size


def _hex(values: Sequence[float]) -> str:
    return ",".join(f"double 0x{struct.pack('>d', value).hex().upper()}" for value in values)
