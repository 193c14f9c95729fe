"""What is known of a lane that was brought up here: its state file, and which processes are its own.

A pid alone proves nothing, since pids are used again. A process is ours if it still has the start
time that was written down; strays are found by a random token in their environment.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from lanelab.errors import BadFile
from lanelab.lane.model import lanes_dir
from lanelab.receipts.files import write_atomic
from lanelab.receipts.model import RecipeRef

TOKEN_VARIABLE = "LANELAB_LANE_TOKEN"  # noqa: S105 - no secret: it marks our processes
Phase = Literal["starting", "ready", "failed", "died", "stopped"]


class Identity(BaseModel):
    """A process: its pid and when it began (seconds since the epoch)."""

    model_config = ConfigDict(extra="forbid")

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Identity:
        """The process that has this pid now. Raises `psutil.NoSuchProcess`."""
        return cls(pid=pid, started=psutil.Process(pid).create_time())

    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            # the clock that start times are counted from may be corrected by a little
            return abs(process.create_time() - self.started) < 1.5 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True


class Spec(BaseModel):
    """What the supervisor is to run; written by `up`, read once."""

    model_config = ConfigDict(extra="forbid")

    lane: str
    token: str
    argv: list[str]
    environment: dict[str, str]
    folder: str
    port: int
    timeout_s: float
    grace_s: float  # between SIGTERM and SIGKILL
    recipe: RecipeRef | None
    log: str
    memory: str
    owner: Identity | None


class State(BaseModel):
    """The state file. `owner` is the process whose end takes the lane down, if it is ephemeral."""

    model_config = ConfigDict(extra="forbid")

    lane: str
    token: str
    phase: Phase
    url: str
    port: int
    argv: list[str]
    recipe: RecipeRef | None
    supervisor: Identity
    server: Identity | None = None
    owner: Identity | None = None
    begun: float
    boot_s: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    cause: str | None = None
    failures_in_a_row: int = 0
    log: str
    memory: str

    def running(self) -> bool:
        """Whether its supervisor still lives and it has not ended."""
        return self.phase in ("starting", "ready") and self.supervisor.alive()


def state_dir() -> Path:
    """Where state files, logs and memory journals stand (git-ignored)."""
    return lanes_dir() / ".state"


def state_path(lane: str) -> Path:
    """The lane's state file."""
    return state_dir() / f"{lane}.json"


def read_state(lane: str) -> State | None:
    """The lane's state, or None if it was never up. Raises `BadFile` for a damaged file."""
    path = state_path(lane)
    try:
        return State.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        what = error.errors()[0]
        raise BadFile(path, f"is no lane state ({what['msg']}); if the lane is down, delete the file") from error


def write_state(state: State) -> None:
    """Replace the lane's state file, in one step."""
    write_atomic(state_path(state.lane), state.model_dump_json(indent=1).encode() + b"\n")


@contextmanager
def locked(lane: str) -> Iterator[None]:
    """Keeps two callers from starting the same lane twice."""
    state_dir().mkdir(parents=True, exist_ok=True)
    with open(state_dir() / f"{lane}.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def processes_of(token: str) -> list[psutil.Process]:
    """All processes that carry the token in their environment, this one left out."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(TOKEN_VARIABLE) == token:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
            continue
    return found


def end_processes(processes: list[psutil.Process], grace_s: float) -> None:
    """SIGTERM, then SIGKILL for what is left after the grace."""
    for process in processes:
        with _gone_is_fine():
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=grace_s)
    for process in left:
        with _gone_is_fine():
            process.kill()
    psutil.wait_procs(left, timeout=5)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return


class MemoryJournal:
    """A line of JSON every few seconds: the lane's resident bytes and what the host has left.

    A box that dies of memory leaves its last lines here. The file is halved at 4 MB.
    """

    LIMIT_BYTES = 4_000_000

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = 0.0

    def note(self, server: Identity, every_s: float) -> None:
        """Write a line, if the last one is older than `every_s`."""
        now = time.time()
        if now - self._last < every_s:
            return
        self._last = now
        resident = 0
        try:
            parent = psutil.Process(server.pid)
            for process in (parent, *parent.children(recursive=True)):
                with _gone_is_fine():
                    resident += process.memory_info().rss
        except psutil.NoSuchProcess:
            return
        host = psutil.virtual_memory()
        line = {"at": round(now, 3), "rss_bytes": resident, "host_available_bytes": host.available}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if self.path.stat().st_size > self.LIMIT_BYTES:
            lines = self.path.read_bytes().splitlines(keepends=True)
            write_atomic(self.path, b"".join(lines[len(lines) // 2 :]))
