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
from codegen.processor import is_x86_64

PARALLEL = "codegen.parallel"
DECLARATION = f"declare void @{PARALLEL}(ptr,ptr,i64,i64) nounwind"
STACK = 1 << 23  # bytes of a worker's stack
# What a caller spends to wake a worker that sleeps, and what then passes before it works: 13 and 25 us where machines
# are virtual. So long a worker looks for work, and a caller at the work of the others, before it sleeps.
LOOKS = 1000, 20_000  # with an instruction that pauses, and without one

PAUSE = "declare void @llvm.x86.sse2.pause()"
FUNCTIONS = {
    "pthread_create": "i32 (ptr,ptr,ptr,ptr)", "pthread_detach": "i32 (i64)", "pthread_sigmask": "i32 (i32,ptr,ptr)",
    "pthread_attr_init": "i32 (ptr)", "pthread_attr_setstacksize": "i32 (ptr,i64)", "pthread_attr_destroy": "i32 (ptr)",
    "pthread_mutex_init": "i32 (ptr,ptr)", "pthread_mutex_lock": "i32 (ptr)", "pthread_mutex_unlock": "i32 (ptr)",
    "pthread_cond_init": "i32 (ptr,ptr)", "pthread_cond_wait": "i32 (ptr,ptr)", "pthread_cond_signal": "i32 (ptr)",
    "sigfillset": "i32 (ptr)", "getpid": "i32 ()", "fegetenv": "i32 (ptr)", "fesetenv": "i32 (ptr)",
}  # fmt: skip


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
    declared = (f"declare {kind.replace(' ', f' @{name}', 1)} nounwind" for name, kind in FUNCTIONS.items())
    text = TEXT.replace("SET_MASK", str(int(signal.SIG_SETMASK))).replace("STACK", str(STACK))
    pause, declaration = ("call void @llvm.x86.sse2.pause()", PAUSE) if is_x86_64() else ("", "")
    text = text.replace("PAUSE", pause).replace("LOOKS", str(LOOKS[not pause]))
    text = "\n".join([*declared, declaration, text])
    library = compile_text(text, ("parallel", "reset"), {name: c_address(name) for name in FUNCTIONS})
    _reset(library)
    return library


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

# `places` is how many workers may still join, `joined` how many have, `active` how many of those are at work, `ready`
# how many look for work without being woken: the mutex guards them. Workers compute with the rounding mode and the
# exception flags of the caller.
TEXT = """
@mutex=internal global [128 x i8] zeroinitializer,align 64
@work=internal global [128 x i8] zeroinitializer,align 64
@done=internal global [128 x i8] zeroinitializer,align 64
@environment=internal global [128 x i8] zeroinitializer,align 64
@next=internal global [16 x i64] zeroinitializer,align 128
@taken=internal global i64 0,align 64
@active=internal global i64 0,align 64
@places=internal global i64 0,align 64
@ready=internal global i64 0,align 64
@joined=internal global i64 0
@workers=internal global i64 0
@blocks=internal global i64 0
@function=internal global ptr null
@context=internal global ptr null
@process=internal global i32 0
define void @reset() nounwind {
 %m=call i32 @pthread_mutex_init(ptr @mutex,ptr null)
 %w=call i32 @pthread_cond_init(ptr @work,ptr null)
 %d=call i32 @pthread_cond_init(ptr @done,ptr null)
 store i64 0,ptr @active
 store i64 0,ptr @places
 store i64 0,ptr @ready
 store i64 0,ptr @workers
 %process=call i32 @getpid()
 store i32 %process,ptr @process
 store atomic i64 0,ptr @taken release,align 8
 ret void
}
define internal void @share(ptr %function,ptr %context,i64 %blocks,ptr %next,i64 %thread) nounwind {
begin:
 br label %look
look:
 %block=atomicrmw add ptr %next,i64 1 monotonic
 %more=icmp ult i64 %block,%blocks
 br i1 %more,label %run,label %end
run:
 call void %function(ptr %context,i64 %block,i64 %thread)
 br label %look
end:
 ret void
}
define internal ptr @worker(ptr %nothing) nounwind {
begin:
 %l0=call i32 @pthread_mutex_lock(ptr @mutex)
 br label %look
look:
 %places=load i64,ptr @places
 %none=icmp eq i64 %places,0
 br i1 %none,label %sleep,label %join
sleep:
 %s=call i32 @pthread_cond_wait(ptr @work,ptr @mutex)
 br label %look
join:
 %fewer=sub i64 %places,1
 store atomic i64 %fewer,ptr @places monotonic,align 8
 %joined=load i64,ptr @joined
 %thread=add i64 %joined,1
 store i64 %thread,ptr @joined
 %active=load i64,ptr @active
 %active1=add i64 %active,1
 store i64 %active1,ptr @active
 %function=load ptr,ptr @function
 %context=load ptr,ptr @context
 %blocks=load i64,ptr @blocks
 %u=call i32 @pthread_mutex_unlock(ptr @mutex)
 %e=call i32 @fesetenv(ptr @environment)
 call void @share(ptr %function,ptr %context,i64 %blocks,ptr @next,i64 %thread)
 %l=call i32 @pthread_mutex_lock(ptr @mutex)
 %now=load i64,ptr @active
 %left=sub i64 %now,1
 store atomic i64 %left,ptr @active release,align 8
 %last=icmp eq i64 %left,0
 br i1 %last,label %tell,label %ready
tell:
 %t=call i32 @pthread_cond_signal(ptr @done)
 br label %ready
ready:
 %waiting=load i64,ptr @ready
 %waiting1=add i64 %waiting,1
 store i64 %waiting1,ptr @ready
 %u1=call i32 @pthread_mutex_unlock(ptr @mutex)
 br label %watch
watch:
 %looks=phi i64 [0,%ready],[%looks1,%again]
 %offered=load atomic i64,ptr @places monotonic,align 8
 %work=icmp ne i64 %offered,0
 %looks1=add i64 %looks,1
 %enough=icmp uge i64 %looks1,LOOKS
 %stop=or i1 %work,%enough
 br i1 %stop,label %return,label %again
again:
 PAUSE
 br label %watch
return:
 %l1=call i32 @pthread_mutex_lock(ptr @mutex)
 %before=load i64,ptr @ready
 %after=sub i64 %before,1
 store i64 %after,ptr @ready
 br label %look
}
define internal void @hire(i64 %wanted) nounwind {
begin:
 %workers=load i64,ptr @workers
 %enough=icmp uge i64 %workers,%wanted
 br i1 %enough,label %end,label %prepare
prepare:
 %all=alloca [128 x i8],align 16
 %before=alloca [128 x i8],align 16
 %attributes=alloca [128 x i8],align 16
 %handle=alloca i64,align 8
 %f=call i32 @sigfillset(ptr %all)
 %b=call i32 @pthread_sigmask(i32 SET_MASK,ptr %all,ptr %before)
 %a=call i32 @pthread_attr_init(ptr %attributes)
 %s=call i32 @pthread_attr_setstacksize(ptr %attributes,i64 STACK)
 br label %start
start:
 %count=phi i64 [%workers,%prepare],[%more,%good]
 %failed=call i32 @pthread_create(ptr %handle,ptr %attributes,ptr @worker,ptr null)
 %bad=icmp ne i32 %failed,0
 br i1 %bad,label %finish,label %good
good:
 %thread=load i64,ptr %handle
 %d=call i32 @pthread_detach(i64 %thread)
 %more=add i64 %count,1
 store i64 %more,ptr @workers
 %missing=icmp ult i64 %more,%wanted
 br i1 %missing,label %start,label %finish
finish:
 %r=call i32 @pthread_attr_destroy(ptr %attributes)
 %m=call i32 @pthread_sigmask(i32 SET_MASK,ptr %before,ptr null)
 br label %end
end:
 ret void
}
define void @parallel(ptr %function,ptr %context,i64 %blocks,i64 %threads) nounwind {
begin:
 %all=call i64 @llvm.umin.i64(i64 %blocks,i64 %threads)
 %others=sub i64 %all,1
 %process=load i32,ptr @process
 %here=call i32 @getpid()
 %own=icmp eq i32 %process,%here
 br i1 %own,label %take,label %alone
take:
 %pair=cmpxchg ptr @taken,i64 0,i64 1 acquire monotonic
 %mine=extractvalue {i64,i1} %pair,1
 br i1 %mine,label %begin.work,label %alone
alone:
 %next=alloca i64,align 8
 store i64 0,ptr %next
 call void @share(ptr %function,ptr %context,i64 %blocks,ptr %next,i64 0)
 ret void
begin.work:
 call void @hire(i64 %others)
 %l=call i32 @pthread_mutex_lock(ptr @mutex)
 %e=call i32 @fegetenv(ptr @environment)
 store ptr %function,ptr @function
 store ptr %context,ptr @context
 store i64 %blocks,ptr @blocks
 store i64 0,ptr @next
 store i64 0,ptr @joined
 store atomic i64 %others,ptr @places monotonic,align 8
 %ready=load i64,ptr @ready
 br label %wake
wake:
 %called=phi i64 [%ready,%begin.work],[%called1,%call]
 %more=icmp ult i64 %called,%others
 br i1 %more,label %call,label %work
call:
 %w=call i32 @pthread_cond_signal(ptr @work)
 %called1=add i64 %called,1
 br label %wake
work:
 %u=call i32 @pthread_mutex_unlock(ptr @mutex)
 call void @share(ptr %function,ptr %context,i64 %blocks,ptr @next,i64 0)
 br label %watch
watch:
 %looks=phi i64 [0,%work],[%looks1,%again]
 %working=load atomic i64,ptr @active monotonic,align 8
 %idle=icmp eq i64 %working,0
 %looks1=add i64 %looks,1
 %enough=icmp uge i64 %looks1,LOOKS
 %stop=or i1 %idle,%enough
 br i1 %stop,label %close,label %again
again:
 PAUSE
 br label %watch
close:
 %l2=call i32 @pthread_mutex_lock(ptr @mutex)
 store atomic i64 0,ptr @places monotonic,align 8
 br label %look
look:
 %left=load i64,ptr @active
 %none=icmp eq i64 %left,0
 br i1 %none,label %finish,label %sleep
sleep:
 %s=call i32 @pthread_cond_wait(ptr @done,ptr @mutex)
 br label %look
finish:
 %u2=call i32 @pthread_mutex_unlock(ptr @mutex)
 store atomic i64 0,ptr @taken release,align 8
 ret void
}
declare i64 @llvm.umin.i64(i64,i64)
"""
