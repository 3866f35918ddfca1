"""Native worker threads. They share the blocks of a loop with the thread that calls a kernel.

Kernels call `codegen.parallel(function, context, blocks, threads)`, which runs `function(context, block, thread)` for
each block, on the calling thread and on up to `threads - 1` workers, and returns when all blocks are done. Which thread
runs a block is left to chance: no result may depend on it. `thread`, below `threads`, is a number that no other thread
has meanwhile.

There is one pool for the process. It starts threads when a call first needs them; they never touch Python and take no
signals. After a call they look for the next one for as long as it takes to wake one, and then sleep. A call waits for
no worker that has not begun. Who finds the pool taken runs all blocks alone; so does a process that was forked behind
Python's back. A fork by Python has a pool of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
from functools import cache

from codegen.engine import Library, Once, compile_text
from codegen.errors import LoweringError
from codegen.functions.libraries import c_address
from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.lanes import SCALAR
from codegen.processor import is_x86_64

PARALLEL = "codegen.parallel"
DECLARATION = f"declare void @{PARALLEL}(ptr,ptr,i64,i64) nounwind"
STACK = 1 << 23  # bytes of a worker's stack
# What a caller spends to wake a worker that sleeps, and what then passes before it works: 13 and 25 us where machines
# are virtual. So long a worker looks for work, and a caller at the work of the others, before it sleeps.
LOOKS = 1000, 20_000  # with an instruction that pauses, and without one

FUNCTIONS = {  # of the C library, with the types of their parameters; all return an int
    "pthread_create": "pointer pointer pointer pointer", "pthread_detach": "int", "pthread_attr_init": "pointer",
    "pthread_attr_setstacksize": "pointer int", "pthread_attr_destroy": "pointer",
    "pthread_mutex_init": "pointer pointer", "pthread_mutex_lock": "pointer", "pthread_mutex_unlock": "pointer",
    "pthread_cond_init": "pointer pointer", "pthread_cond_wait": "pointer pointer", "pthread_cond_signal": "pointer",
    "pthread_sigmask": "int32 pointer pointer", "sigfillset": "pointer", "fegetenv": "pointer", "fesetenv": "pointer",
    "getpid": "",
}  # fmt: skip
# Words of 8 bytes that all threads share; what is written often has lines of the cache of its own. PLACES is how many
# workers may still join, JOINED how many have, ACTIVE how many of those are at work, READY how many look for work
# without being woken: the mutex guards them. NEXT is the next block, TAKEN 1 while a call uses the pool.
WORDS: Numbers = {
    "NEXT": 0, "TAKEN": 16, "ACTIVE": 24, "PLACES": 32, "READY": 40, "JOINED": 41, "WORKERS": 42, "BLOCKS": 43,
    "FUNCTION": 44, "CONTEXT": 45, "PROCESS": 46, "END": 48,
}  # fmt: skip
OBJECTS = ("state", "mutex", "work", "done", "environment")  # the words, and objects of the C library

# Workers compute with the rounding mode and the exception flags of the caller.
POOL = '''
def reset():
    shared = ints(state)
    pthread_mutex_init(mutex, null)
    pthread_cond_init(work, null)
    pthread_cond_init(done, null)
    clear(shared, END)
    shared[PROCESS] = getpid()
    atomic_store(shared[TAKEN:], 0)

def share(function: pointer, context: pointer, blocks: int, next: ints, thread: int):
    block = atomic_add(next, 1)
    while block < blocks:
        function(context, block, thread)
        block = atomic_add(next, 1)

def watch(number: ints, zero: bool):
    """Look at a number until it is zero, or until it is not, but not for long."""
    looks = 0
    while looks < LOOKS and (atomic_load(number) == 0) != zero:
        looks += 1
        pause()

def worker(nothing: pointer) -> pointer:
    shared = ints(state)
    pthread_mutex_lock(mutex)
    while True:
        while shared[PLACES] == 0:
            pthread_cond_wait(work, mutex)
        atomic_store(shared[PLACES:], shared[PLACES] - 1)
        shared[JOINED] += 1
        shared[ACTIVE] += 1
        function, context, blocks = pointers(state)[FUNCTION], pointers(state)[CONTEXT], shared[BLOCKS]
        thread = shared[JOINED]
        pthread_mutex_unlock(mutex)
        fesetenv(environment)
        share(function, context, blocks, shared[NEXT:], thread)
        pthread_mutex_lock(mutex)
        atomic_store(shared[ACTIVE:], shared[ACTIVE] - 1)
        if shared[ACTIVE] == 0:
            pthread_cond_signal(done)
        shared[READY] += 1
        pthread_mutex_unlock(mutex)
        watch(shared[PLACES:], False)
        pthread_mutex_lock(mutex)
        shared[READY] -= 1
    return null

def hire(wanted: int):
    """Start threads until there are enough; they take no signals."""
    shared = ints(state)
    if shared[WORKERS] < wanted:
        signals = room(bytes, 128)
        before = room(bytes, 128)
        attributes = room(bytes, 128)
        handle = room(ints, 1)
        sigfillset(signals)
        pthread_sigmask(SET_MASK, signals, before)
        pthread_attr_init(attributes)
        pthread_attr_setstacksize(attributes, STACK)
        while shared[WORKERS] < wanted:
            if pthread_create(handle, attributes, worker, null) != 0:
                break
            pthread_detach(handle[0])
            shared[WORKERS] += 1
        pthread_attr_destroy(attributes)
        pthread_sigmask(SET_MASK, before, null)

def parallel(function: pointer, context: pointer, blocks: int, threads: int):
    shared = ints(state)
    next = room(ints, 1)
    next[0] = 0
    others = (threads if threads < blocks else blocks) - 1
    if shared[PROCESS] != getpid():
        share(function, context, blocks, next, 0)
    elif claim(shared[TAKEN:]):
        hire(others)
        pthread_mutex_lock(mutex)
        fegetenv(environment)
        pointers(state)[FUNCTION] = function
        pointers(state)[CONTEXT] = context
        shared[BLOCKS] = blocks
        shared[NEXT] = 0
        shared[JOINED] = 0
        atomic_store(shared[PLACES:], others)
        for called in range(shared[READY], others):
            pthread_cond_signal(work)
        pthread_mutex_unlock(mutex)
        share(function, context, blocks, shared[NEXT:], 0)
        watch(shared[ACTIVE:], True)
        pthread_mutex_lock(mutex)
        atomic_store(shared[PLACES:], 0)
        while shared[ACTIVE] != 0:
            pthread_cond_wait(done, mutex)
        pthread_mutex_unlock(mutex)
        atomic_store(shared[TAKEN:], 0)
    else:
        share(function, context, blocks, next, 0)
'''


@cache
def available() -> bool:
    """Whether this system has POSIX threads; without them, kernels run on one thread.

    >>> available() in (True, False)
    True
    """
    try:
        return os.name == "posix" and all(map(c_address, FUNCTIONS))
    except LoweringError:
        return False


@Once
def pool() -> Library:
    """The pool of this process; it lives as long as the process, because its threads run its code."""
    library = compile_text(_text(), ("parallel", "reset"), {name: c_address(name) for name in FUNCTIONS})
    _reset(library)
    return library


def _text() -> str:
    kinds = {name: (f"{kind}{k}: {kind}" for k, kind in enumerate(text.split())) for name, text in FUNCTIONS.items()}
    declared = "".join(f"def {name}({', '.join(parameters)}) -> int32: ...\n" for name, parameters in kinds.items())
    numbers = WORDS | {name: f"@{name}" for name in OBJECTS}
    numbers |= {"STACK": STACK, "LOOKS": LOOKS[not is_x86_64()], "SET_MASK": int(signal.SIG_SETMASK)}
    routines = Routines({"": declared + POOL}, lambda scalar: numbers)
    objects = [f"@{name}=internal global [{8 * int(WORDS['END'])} x i8] zeroinitializer,align 128" for name in OBJECTS]
    return "\n".join([*objects, routines.text(SCALAR, public=("void @parallel(", "void @reset("))])


def parallel_address() -> int:
    """Return the address of `codegen.parallel`; LoweringError without POSIX threads.

    >>> not available() or parallel_address() > 0
    True
    """
    return pool().addresses["parallel"]


def _reset(library: Library) -> None:
    ctypes.CFUNCTYPE(None)(library.addresses["reset"])()


def _after_fork() -> None:
    """Reset the workers in a forked child, as threads do not survive a fork."""
    for library in pool.made.values():
        _reset(library)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
