"""Turn IR text into machine code in memory. This is the only file that imports llvmlite.binding.

One lock for all calls of LLVM, beside llvmlite's own, survives forks and interrupts.

A few libraries share a linker, which is closed when the last of them is dropped; compilation is serialised by one lock.
The collector runs finalizers anywhere, also where that lock or llvmlite's own is held, so they take none: they leave
the number of what died, and whoever takes the lock next frees it.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from codegen.errors import ArgumentError, LoweringError, WorkbenchError
from codegen.later import Deferred
from codegen.limits import check

if TYPE_CHECKING:
    import subprocess

    import llvmlite
    import llvmlite.binding as llvm

    from codegen import gpu_architectures
else:  # not loaded by a process that runs what was compiled before
    gpu_architectures = Deferred("codegen.gpu_architectures")
    subprocess, llvmlite, llvm = Deferred("subprocess"), Deferred("llvmlite"), Deferred("llvmlite.binding")

P = ParamSpec("P")
T = TypeVar("T")

OPEN: dict[int, tuple[Any, Linker]] = {}  # machine code in memory, out of the collector's reach: tracker and linker
SHARED = 16  # libraries of one linker, which takes five times as long to make as one to link, and keeps 10 kB of each
_NUMBERS = count()
_DROPPED: deque[int] = deque()  # of libraries that died and are to be freed; no longer than OPEN


LOCK = threading.RLock()
_HELD: list[AbstractContextManager[Any]] = []  # while the process forks


def _calls() -> Any:
    """Return the lock that llvmlite holds in every call, also where it frees things; None before it is loaded."""
    loaded = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(loaded, "lib", None), "_lock", None)


def release_calls() -> None:
    """Release what an interrupt has left held: llvmlite's lock is taken by Python code, in which one may come.

    Nobody else could call LLVM any more. No call is running: this thread is back from all of its own.
    """
    lock = getattr(_calls(), "_lock", None)
    while lock is not None and lock._is_owned():
        lock.release()


def _hold() -> None:
    LOCK.acquire()
    calls = _calls() or nullcontext()
    calls.__enter__()
    _HELD.append(calls)


def _let_go() -> None:
    _HELD.pop().__exit__(None, None, None)
    LOCK.release()


if hasattr(os, "register_at_fork"):  # a child must not be born while another thread compiles
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)


@contextmanager
def _compiling() -> Iterator[None]:
    """Hold the lock, after the libraries that died have been freed; Ctrl-C inside leaves no lock of llvmlite's held."""
    with LOCK:
        try:
            while _DROPPED:
                tracker, linker = OPEN.pop(_DROPPED.popleft())
                tracker.close()
                linker.leave()
            yield
        except BaseException:
            release_calls()
            raise


class Once(Generic[P, T]):
    """A function made into a cache that calls it once for each argument, also where threads ask at the same time.

    For machine code that lives as long as the process: of what `functools.cache` makes twice, one dies in use.

    >>> kept = Once(lambda size: [0] * size)
    >>> kept(3) is kept(3)
    True
    """

    def __init__(self, make: Callable[P, T]) -> None:
        self.made: dict[tuple[Any, ...], T] = {}
        self._make = make

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what was made."""
        key = (*args, *kwargs.items())
        if key not in self.made:
            with _compiling():
                if key not in self.made:
                    self.made[key] = self._make(*args, **kwargs)
        return self.made[key]


class Image(NamedTuple):
    """Object files in memory, not linked yet, and the seconds that parsing and code generation took."""

    parts: tuple[bytes, ...]
    seconds: tuple[float, float]

    @property
    def code(self) -> bytes:
        """The object file of code that was compiled as one module."""
        (code,) = self.parts
        return code

    @property
    def code_bytes(self) -> int:
        """Size of the machine code alone."""
        files = [llvm.ObjectFileRef.from_data(part) for part in self.parts]  # a section must not outlive its file
        return sum(section.size() for file in files for section in file.sections() if section.is_text())


class Linker:
    """LLVM's linker of SHARED libraries; closed when they were all made and freed. To be used under the lock."""

    newest: Linker | None = None

    def __init__(self) -> None:
        self.jit: Any = llvm.create_lljit_compiler(target_machine(2))  # without a machine it asks the processor anew
        self._names = [f"kernel{k}" for k in range(SHARED)]  # none is used twice
        self._open = 0

    @classmethod
    def with_room(cls) -> Linker:
        """Return the linker that the next library belongs to."""
        if cls.newest is None or not cls.newest._names:
            cls.newest = cls()
        return cls.newest

    def link(self, builder: Any) -> Any:
        """Return the tracker of a library; RuntimeError where something is missing, and then no other comes in here."""
        self._open += 1
        try:
            return builder.link(self.jit, self._names.pop())
        except RuntimeError:
            self._names.clear()
            self.leave()
            raise

    def leave(self) -> None:
        """Forget a library, which has been freed."""
        self._open -= 1
        if not self._open and not self._names:
            self.jit.close()


class Library:
    """Machine code in memory: the addresses of exported functions; freed by the next compilation after its death."""

    def __init__(self, linker: Linker, tracker: Any, names: tuple[str, ...]) -> None:
        self.addresses: dict[str, int] = {name: tracker[name] for name in names}
        number = next(_NUMBERS)
        OPEN[number] = tracker, linker
        self._number = number

    def __del__(self, dropped: Callable[[int], None] = _DROPPED.append) -> None:
        number = getattr(self, "_number", None)
        if number is not None:
            dropped(number)


@cache
def host() -> tuple[str, str]:
    """Return the name and the feature string of this machine's processor."""
    with _compiling():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def identity() -> dict[str, str]:
    """Return what object code depends on: the processor, and the versions of the compiler and the C library."""
    processor, features = host()
    return {
        "processor": processor,
        "features": features,
        "triple": llvm.get_process_triple(),
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "llvmlite": llvmlite.__version__,
        "libc": " ".join(platform.libc_ver()),
    }


@cache
def target_machine(level: int, processor: str = "") -> Any:
    """Return the target machine of an optimisation level (0 to 3); kept for the life of the process.

    With a `processor` ("host", "generic" or a name that LLVM knows), its object files are for a linker.
    """
    own = host()
    name, features = own if processor in ("", "host") else (processor, "")
    reloc, model = ("pic", "default") if processor else ("default", "jitdefault")
    with _compiling():
        if processor:
            llvm.initialize_native_asmparser()  # exported code asks the processor in its own words
        target = llvm.Target.from_triple(llvm.get_process_triple())
        return target.create_target_machine(cpu=name, features=features, opt=level, reloc=reloc, codemodel=model)


@cache
def check_processor(processor: str) -> str:
    """Return the name of a processor ("host": of this one); ArgumentError for one that LLVM does not know.

    LLVM says so only on the standard error stream.

    >>> check_processor("generic")
    'generic'
    """
    if processor in ("host", "generic"):
        return host()[0] if processor == "host" else processor
    asked = isinstance(processor, str) and processor.isprintable() and processor != ""
    if not asked or "not a recognized processor" in _said_of(processor):
        raise ArgumentError(
            f"cpu={processor!r}",
            why="LLVM knows no such processor for this kind of machine",
            do='use "host", "generic", or a name as of clang -mcpu=help',
        )
    return processor


PROBE = """
import sys
sys.path.append(sys.argv[2])
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=sys.argv[1])
print("asked")
"""


def _said_of(processor: str) -> str:
    """Return what LLVM says of a processor, in a process that sees llvmlite and nothing of the current folder."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(llvmlite.__file__)))
    command = [sys.executable, "-I", "-S", "-c", PROBE, processor, packages]  # -S: no other llvmlite, no .pth files
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise WorkbenchError(f"cpu={processor!r}: LLVM could not be asked for it", why=str(error)) from error
    if done.stdout.strip() != "asked":
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise WorkbenchError(f"cpu={processor!r}: LLVM could not be asked for it", why=why, do="report this as a bug")
    return done.stderr


def compile_text(text: str, names: tuple[str, ...], addresses: dict[str, int], level: int = 2) -> Library:
    """Compile IR text and return the library of its exported functions.

    `addresses` gives the external symbols. LoweringError for invalid IR (with LLVM's message).

    >>> compile_text("define i32 @one() { ret i32 1 }", ("one",), {}, 0).addresses["one"] > 0
    True
    """
    return link(compile_object(text, level), names, addresses)


def compile_object(text: str, level: int = 2, processor: str = "") -> Image:
    """Compile IR text to an object file, to be linked here or, for a named `processor`, by the system's linker.

    No address of this process stands in it.

    >>> compile_object("define i32 @one() { ret i32 1 }").code_bytes > 0
    True
    """
    with _compiling():
        machine = target_machine(level, processor)
        start = time.perf_counter()
        with _parsed(text) as module:
            parsed = time.perf_counter()
            code = machine.emit_object(module)
        return Image((code,), (parsed - start, time.perf_counter() - parsed))


def compile_modules(texts: list[str], level: int = 2) -> Image:
    """Compile modules that call each other; between two of them, limits and Ctrl-C come through."""
    images = []
    for text in texts:
        check("compiling")
        images.append(compile_object(text, level))
    parse, generate = zip(*(image.seconds for image in images), strict=True)
    return Image(tuple(part for image in images for part in image.parts), (sum(parse), sum(generate)))


def link(image: Image, names: tuple[str, ...], addresses: dict[str, int]) -> Library:
    """Load object files and bind their external symbols by name; LoweringError for one that nobody defines."""
    builder = llvm.JITLibraryBuilder().add_current_process()
    for part in image.parts:
        builder.add_object_img(part)
    for name, address in addresses.items():
        builder.import_symbol(name, address)
    for name in names:
        builder.export_symbol(name)
    with _compiling():
        linker = Linker.with_room()
        try:
            return Library(linker, linker.link(builder), names)
        except RuntimeError as error:
            raise LoweringError("a kernel did not link", why=str(error).strip(), do="report this as a bug") from error


def assembly(text: str, level: int = 2) -> str:
    """Return the assembly of IR text on this machine.

    >>> "one" in assembly("define i32 @one() { ret i32 1 }")
    True
    """
    with _parsed(text) as module:
        return str(target_machine(level).emit_assembly(module))


DEVICE = "nvptx64-nvidia-cuda"


@cache
def _device_machine(architecture: str) -> Any:
    with _compiling():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target, features = llvm.Target.from_triple(DEVICE), f"+ptx{gpu_architectures.architecture_of(architecture).ptx}"
        return target.create_target_machine(cpu=architecture, features=features, opt=3)


def device_assembly(text: str, architecture: str) -> str:
    """Return PTX, the assembly of NVIDIA's GPUs, of IR text; ArgumentError for an architecture that is not known.

    What is marked so is written where it is called, and what is only passed through memory of a thread's own goes into
    registers. Nothing else is changed: no operation is contracted, and none reordered.

    >>> ".entry one" in device_assembly("define ptx_kernel void @one() { ret void }", "sm_80")
    True
    """
    machine = _device_machine(architecture)
    with _parsed(f'target triple = "{DEVICE}"\n{text}') as module:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        return str(machine.emit_assembly(module))


@contextmanager
def _parsed(text: str) -> Iterator[Any]:
    """Hold the lock, with the module of IR text; LoweringError for invalid IR."""
    host()
    with _compiling():
        try:
            module = llvm.parse_assembly(text, llvm.create_context())
            module.verify()
        except RuntimeError as error:
            raise LoweringError("invalid LLVM IR", why=str(error).strip(), do="report this as a bug") from error
        try:
            yield module
        finally:
            module.close()
