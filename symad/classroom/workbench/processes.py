"""Worker processes: each runs one request at a time and can be stopped; a warm one waits.

Where the system forks, they are forked from an idle process that has imported everything, so that a new one starts in
some hundredths of a second. A request whose client has left is cancelled.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import select
import socket
import threading
import time
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, TypeAlias

from codegen.records import dataclass

DESK = "symad.classroom.workbench.desk"  # imported in the workers only, so that the server starts at once
LOOK = 0.05  # seconds between checks whether the client still waits
PATIENCE = 0.3  # seconds for a request after its client has left: most end, and their process is kept
GRACE = 5.0  # seconds beyond a request's limit, after which its process is killed
MOST_WAITING = 200
Message: TypeAlias = dict[str, Any]
GONE: Message = {"error": "nobody waits for this any more"}


@dataclass
class Worker:
    """A process and the connection to it."""

    process: Any
    connection: Connection

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.connection.close()


class Workshop:
    """The worker processes of a workbench."""

    def __init__(self, file: str, allow_code: bool, seconds: float) -> None:
        self.arguments, self.seconds = (file, allow_code, seconds), seconds
        self.count = max(2, min(4, (os.cpu_count() or 2) + 1))
        self._context: BaseContext = _context()
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        self._places = threading.Semaphore(MOST_WAITING)
        self._closed = False
        threading.Thread(target=self._fill, daemon=True).start()

    def carry_out(self, request: Message, tell: Callable[[Message], None], client: socket.socket | None = None) -> None:
        """Carry out a request. `tell` gets its progress and, last, its answer, its file or its error.

        If the client leaves, the request ends with its process.
        """
        if not self._places.acquire(blocking=False):
            tell({"error": "too many requests at once: try again"})
            return
        try:
            worker = self._free(client)
        finally:
            self._places.release()
        if worker is None:
            return
        kept = False
        try:
            kept = self._watched(worker, request, tell, client)
        finally:
            if not kept:
                worker.end()
            with self._lock:
                if not kept and worker in self._all:
                    self._all.remove(worker)
            if not self._closed:
                self._idle.put(worker if kept else self._started())

    def close(self) -> None:
        """End all processes."""
        self._closed = True
        with self._lock:
            for worker in self._all:
                worker.end()
            self._all.clear()

    def _fill(self) -> None:
        """Start the processes. The first is ready once everything is imported."""
        for _ in range(self.count):
            if not self._closed:
                self._idle.put(self._started())

    def _started(self) -> Worker:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_work, args=(there, *self.arguments), daemon=True)  # type: ignore[attr-defined]
        process.start()
        there.close()
        worker = Worker(process, here)
        with self._lock:
            self._all.append(worker)
        return worker

    def _free(self, client: socket.socket | None) -> Worker | None:
        while not _has_left(client):
            try:
                return self._idle.get(timeout=LOOK)
            except queue.Empty:
                continue
        return None

    def _watched(
        self, worker: Worker, request: Message, tell: Callable[[Message], None], client: socket.socket | None
    ) -> bool:
        """Forward a worker's messages until it has answered. Return whether it can be used again."""
        end = time.monotonic() + self.seconds + GRACE
        try:
            worker.connection.send(request)
            while time.monotonic() < end:
                if not wait([worker.connection], LOOK):
                    if _has_left(client):
                        return _ends_soon(worker)
                    continue
                message = worker.connection.recv()
                tell(message)
                if "progress" not in message:
                    return True
        except (EOFError, OSError) as error:
            if isinstance(error, BrokenPipeError | ConnectionResetError) and worker.process.is_alive():
                return False  # the client has left
            tell({"error": "the process that computed this has ended: a defect, or no memory left; it starts anew"})
            return False
        tell({"error": f"this took longer than {self.seconds:g} s, and was ended"})
        return False


def _ends_soon(worker: Worker) -> bool:
    """Whether a worker without a waiting client answers in time. Its messages are dropped."""
    end = time.monotonic() + PATIENCE
    while wait([worker.connection], max(0.0, end - time.monotonic())):
        if "progress" not in worker.connection.recv():
            return True
    return False


def _work(connection: Connection, file: str, allow_code: bool, seconds: float) -> None:
    import_module(DESK).work(connection, file, allow_code, seconds)


def _has_left(client: socket.socket | None) -> bool:
    """Whether the other end of a connection was closed or is broken."""
    if client is None:
        return False
    try:
        readable, _, _ = select.select([client], [], [], 0)
        return bool(readable) and client.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


def _context() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([DESK])
    return context
