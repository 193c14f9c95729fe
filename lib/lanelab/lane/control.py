"""Bringing lanes up and down. The server belongs to a detached supervisor, never to the caller."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from lanelab import paths
from lanelab.lane import logs
from lanelab.lane.errors import LaneFailed, LaneIsUp, NotOurs, PortInUse
from lanelab.lane.launch import HOST, launch_of
from lanelab.lane.model import Endpoint, Lane, lane_names, load
from lanelab.lane.resolve import resolve
from lanelab.lane.state import (
    TOKEN_VARIABLE,
    Identity,
    Spec,
    State,
    end_processes,
    locked,
    processes_of,
    read_state,
    state_dir,
    write_state,
)
from lanelab.receipts.files import write_atomic

Progress = Callable[[str], None]
KEPT_LOGS = 10
GRACE_S = 10.0
TELL_S, TELL_AGAIN_S = 2.0, 10.0  # between two lines of progress, with news and without


def _silent(text: str) -> None:
    return


def up(
    name: str,
    port: int = 0,
    timeout_s: float = 300.0,
    *,
    owner_pid: int | None = None,
    progress: Progress = _silent,
) -> Endpoint:
    """Bring a lane up and return its endpoint once it has generated; port 0 takes a free one.

    A lane that is up already is returned as it is. With `owner_pid` it is ephemeral: it goes down
    when that process ends, however that happens. If this call is interrupted it takes down what it
    started. Raises `UnknownLane`, `NotInstalled`, `PortInUse`, `LaneIsUp`, `LaneFailed`, `LaneDown`.
    """
    lane = load(name)
    if lane.kind == "attach":
        return resolve(name)
    with locked(lane.name):
        state = read_state(lane.name)
        if state and state.running():
            _same_or_refuse(lane, state, port)
            started = False
        else:
            if state:
                end_processes(processes_of(state.token), 5.0)
            state = _spawn(lane, port or _free_port(), timeout_s, owner_pid)
            started = True
    if state.phase != "ready":
        try:
            state = _wait(lane, state, timeout_s, progress)
        except BaseException:
            if started:
                down(name)
            raise
    return replace(resolve(name), started_here=started, boot_s=state.boot_s)


def down(name: str) -> bool:
    """Take a lane down, with all its processes; False if it was not up. Raises `UnknownLane`, `NotOurs`."""
    lane = load(name)
    if lane.kind == "attach":
        raise NotOurs(
            f"lane {name!r} is attached to {lane.url}: it was not brought up here, so it is not taken down here",
            lane=name,
            url=lane.url,
        )
    with locked(lane.name):
        state = read_state(lane.name)
        if state is None:
            return False
        was_up = state.running()
        if was_up:
            supervisor = psutil.Process(state.supervisor.pid)
            with contextlib.suppress(psutil.NoSuchProcess):
                supervisor.terminate()
                try:
                    supervisor.wait(timeout=GRACE_S + 10)
                except psutil.TimeoutExpired:
                    supervisor.kill()
        strays = processes_of(state.token)
        end_processes(strays, 5.0)
        after = read_state(lane.name)
        if after and after.phase in ("starting", "ready"):
            # its supervisor was killed before it could write this down
            after.phase, after.ended = "stopped", time.time()
            write_state(after)
        return was_up or bool(strays)


def down_all() -> list[str]:
    """Take down every lane that was brought up here; returns the names of those that were up."""
    names = sorted(path.stem for path in state_dir().glob("*.json") if not path.name.endswith(".spec.json"))
    return [name for name in names if name in lane_names() and load(name).kind != "attach" and down(name)]


@contextmanager
def ephemeral(
    name: str, port: int = 0, timeout_s: float = 300.0, *, progress: Progress = _silent
) -> Iterator[Endpoint]:
    """A lane for the length of a `with` block, tied to this process; one that was up already stays up."""
    endpoint = up(name, port, timeout_s, owner_pid=os.getpid(), progress=progress)
    try:
        yield endpoint
    finally:
        if endpoint.started_here:
            down(name)


def holder_of(port: int) -> tuple[int | None, str]:
    """Who listens on a port of this machine: pid and name; (None, …) if that cannot be seen."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                if connection.pid is None:
                    break
                process = psutil.Process(connection.pid)
                command = " ".join(process.cmdline()[:4]) or process.name()
                return connection.pid, command[:120]
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass
    return None, "a process that cannot be seen"


def _same_or_refuse(lane: Lane, state: State, port: int) -> None:
    if port and port != state.port:
        raise LaneIsUp(
            f"lane {lane.name!r} is already up at {state.url}, not on port {port}; a lane that is up is never "
            f"restarted: first run: lanelab lane down {lane.name}",
            lane=lane.name,
            url=state.url,
        )
    wanted = lane.recipe_ref()
    if wanted and state.recipe and wanted.digest != state.recipe.digest:
        raise LaneIsUp(
            f"lane {lane.name!r} is up at {state.url} with another recipe than its file holds now; a lane that is up "
            f"is never restarted: first run: lanelab lane down {lane.name}",
            lane=lane.name,
            url=state.url,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        # a port in TIME_WAIT is free for a server, which sets this too
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            pid, holder = holder_of(port)
            who = f"process {pid} ({holder})" if pid else holder
            why = f"is held by {who}" if error.errno == 98 else f"cannot be used: {error.strerror}"
            raise PortInUse(
                f"port {port} {why}; choose another, or 0 for a free one", port=port, pid=pid, holder=holder
            ) from error


def _spawn(lane: Lane, port: int, timeout_s: float, owner_pid: int | None) -> State:
    _refuse_taken(port)
    launch = launch_of(lane, port)
    token = secrets.token_hex(16)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    base = state_dir() / f"{lane.name}-{stamp}-{token[:6]}"
    _forget_old_logs(lane.name)
    spec = Spec(
        lane=lane.name,
        token=token,
        argv=launch.argv,
        environment={**launch.environment, TOKEN_VARIABLE: token, "LANELAB_DETACHED": "1"},
        folder=str(launch.folder),
        port=port,
        timeout_s=timeout_s,
        grace_s=GRACE_S,
        recipe=lane.recipe_ref(),
        log=f"{base}.log",
        memory=f"{base}.memory.jsonl",
        owner=Identity.of(owner_pid) if owner_pid else None,
    )
    path = Path(f"{base}.spec.json")
    write_atomic(path, spec.model_dump_json().encode())
    path.chmod(0o600)  # it holds the environment, which may hold keys; the supervisor deletes it
    environment = {**os.environ, "LANELAB_ROOT": str(paths.root()), "LANELAB_DETACHED": "1", TOKEN_VARIABLE: token}
    with open(spec.log, "ab") as log:
        starter = subprocess.run(
            [sys.executable, "-m", "lanelab.lane.supervisor", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            check=False,
        )
    deadline = time.monotonic() + 15
    while starter.returncode == 0 and time.monotonic() < deadline:
        state = read_state(lane.name)
        if state and state.token == token:
            return state
        time.sleep(0.02)
    path.unlink(missing_ok=True)
    raise _failure(lane.name, f"its supervisor did not start: {logs.cause(Path(spec.log))}", spec.log, None, 0.0, 0)


def _wait(lane: Lane, state: State, timeout_s: float, progress: Progress) -> State:
    """Until the supervisor says ready. The supervisor keeps the time; this only guards against its death."""
    begun = time.monotonic()
    told, shown = 0.0, ""
    while True:
        latest = read_state(lane.name)
        if latest is None or latest.token != state.token:
            raise _failure(lane.name, "it was taken down meanwhile", state.log, None, time.monotonic() - begun, 0)
        seconds = time.monotonic() - begun
        if latest.phase == "ready":
            return latest
        if not latest.running() or seconds > timeout_s + 30:
            latest = read_state(lane.name) or latest
            if latest.phase == "ready":
                return latest
            cause = latest.cause or ("it was taken down" if latest.phase == "stopped" else "its supervisor was killed")
            raise _failure(lane.name, cause, latest.log, latest.exit_code, seconds, latest.failures_in_a_row)
        if seconds - told >= TELL_S:
            last = "".join(logs.tail_lines(Path(state.log), 1))
            if last != shown or seconds - told >= TELL_AGAIN_S:
                news = f": {_clipped(last)}" if last and last != shown else ""
                progress(f"lane {lane.name}: starting, {seconds:.0f} s{news}")
                told, shown = seconds, last
        time.sleep(0.05)


def _clipped(line: str) -> str:
    return line if len(line) <= 100 else line[:99] + "…"


def _failure(lane: str, cause: str, log: str, code: int | None, seconds: float, in_a_row: int) -> LaneFailed:
    shown = shown_path(log)
    repeated = f" ({in_a_row} failures in a row; it is not restarted by itself)" if in_a_row > 1 else ""
    exit_text = f", exit code {code}" if code is not None else ""
    return LaneFailed(
        f"lane {lane!r} did not come up after {seconds:.1f} s{exit_text}: {cause}{repeated}; log: {shown}",
        lane=lane,
        cause=cause,
        log=shown,
        exit_code_of_server=code,
        seconds=round(seconds, 3),
        in_a_row=in_a_row,
    )


def shown_path(path: str) -> str:
    """A path as it is shown: from the lab's root, if it is in there."""
    try:
        return str(Path(path).relative_to(paths.root()))
    except ValueError:
        return path


def _forget_old_logs(lane: str) -> None:
    found = sorted(state_dir().glob(f"{lane}-*Z-*.log"))
    for path in found[: -KEPT_LOGS or None]:
        path.unlink(missing_ok=True)
        path.with_suffix("").with_suffix(".memory.jsonl").unlink(missing_ok=True)
