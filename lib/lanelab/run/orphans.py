"""Processes that a notebook left behind, and how they are ended.

A child in a session of its own outlives its kernel. Two marks find it: it descends from this
process (on Linux an orphan is handed to the nearest subreaper, which the runner makes itself for the
length of the run), or its environment holds the run's id. What the run did not start is never
touched: children that were there before, and lanes that were handed to a detached supervisor
(`LANELAB_DETACHED=1` in their environment), with all that descends from those.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psutil

RUN_MARK = "LANELAB_RUN"
DETACHED_MARK = "LANELAB_DETACHED"
TERM_GRACE_S = 1.0
KILL_WAIT_S = 2.0
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
# helpers of the standard library that end by themselves when their parent has gone
_OWN_HELPERS = ("multiprocessing.resource_tracker", "loky.backend.resource_tracker")


@dataclass(frozen=True)
class Ended:
    """A process that the runner had to end."""

    pid: int
    command: str
    by: str  # "exited" (with the kernel) | "SIGTERM" | "SIGKILL"


@contextlib.contextmanager
def subreaper() -> Iterator[None]:
    """Orphans of this process's children become its own children meanwhile (Linux; elsewhere nothing)."""
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    before = ctypes.c_int(0)
    if libc is not None:
        libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        if libc is not None and not before.value:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class Family:
    """The processes of one run: those that appeared below this process, or carry the run's mark."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._strangers = {_key(process) for process in _descendants(os.getpid())}

    def members(self, kernel_pid: int | None = None) -> list[psutil.Process]:
        """The run's living processes other than the kernel."""
        spared = self._spared()
        found = {process.pid: process for process in _descendants(os.getpid())}
        found.update({process.pid: process for process in marked(self.run_id)})
        return [
            process
            for process in found.values()
            if process.pid not in {kernel_pid, os.getpid()} and _key(process) not in spared and _alive(process)
        ]

    def _spared(self) -> set[tuple[int, float]]:
        spared = set(self._strangers)
        for process in _descendants(os.getpid()):
            if _key(process) in self._strangers or _detached(process):
                spared.add(_key(process))
                spared.update(_key(child) for child in _descendants(process.pid))
        return spared


def marked(run_id: str) -> list[psutil.Process]:
    """Processes of this user whose environment names the run; detached lanes are left out."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if environment.get(RUN_MARK) == run_id and environment.get(DETACHED_MARK) != "1":
                found.append(process)
    return [process for process in found if process.pid != os.getpid()]


def end(processes: Iterable[psutil.Process]) -> list[Ended]:
    """Ask by SIGTERM, then force by SIGKILL; returns what was ended and how."""
    waiting = [process for process in processes if _alive(process)]
    commands = {process.pid: _command(process) for process in waiting}
    ended: list[Ended] = []
    for signum, wait_s in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, KILL_WAIT_S)):
        for process in waiting:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signum)
        waiting, gone = _wait(waiting, wait_s)
        ended += [Ended(process.pid, commands[process.pid], signum.name) for process in gone]
    return ended


def sweep(family: Family, kernel_pid: int | None, before: dict[int, str]) -> list[Ended]:
    """End what is left of a run whose kernel has gone.

    `before` holds the commands of those that lived when the kernel was told to go (`commands`): they
    were left behind too, even if they went with it. Rounds go on until nothing new appears, since a
    process may start another while it is ended.
    """
    ended: list[Ended] = []
    for _ in range(4):
        left = family.members(kernel_pid)
        if not left:
            break
        ended += end(left)
    done = {item.pid for item in ended}
    ended += [
        Ended(pid, command, "exited")
        for pid, command in before.items()
        if pid not in done and not any(helper in command for helper in _OWN_HELPERS)
    ]
    return [item for item in ended if item.command]


def commands(processes: Iterable[psutil.Process]) -> dict[int, str]:
    """The processes' commands by pid, read while they live."""
    return {process.pid: _command(process) for process in processes}


def _wait(processes: list[psutil.Process], seconds: float) -> tuple[list[psutil.Process], list[psutil.Process]]:
    until = time.monotonic() + seconds
    left, gone = list(processes), []
    while left and time.monotonic() < until:
        for process in list(left):
            if not _alive(process):
                left.remove(process)
                gone.append(process)
        if left:
            time.sleep(0.02)
    return left, gone


def _alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie child of ours is collected on the way."""
    try:
        if not process.is_running():
            return False
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        if process.ppid() == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        return False
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _detached(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get(DETACHED_MARK) == "1"
    return False


def _key(process: psutil.Process) -> tuple[int, float]:
    try:
        return process.pid, process.create_time()
    except psutil.Error:
        return process.pid, 0.0


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200] or process.name()
    except psutil.Error:
        return ""
