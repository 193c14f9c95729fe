"""The detached supervisor of one lane: it starts the server, watches it, and ends with it.

It runs in a session of its own, so that no terminal, kernel or notebook takes the lane along when
it ends. It never restarts a server: a lane that died is reported with its cause. The server is
tied to it (on Linux by the parent-death signal), so that none outlives its supervisor.

    starting --health and one generation--> ready --server ends--> died
        |-- server ends, or out of time --> failed
        any --SIGTERM, or the owner of an ephemeral lane ended--> stopped
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from lanelab.lane import logs, wire
from lanelab.lane.launch import HOST
from lanelab.lane.state import (
    Identity,
    MemoryJournal,
    Phase,
    Spec,
    State,
    end_processes,
    processes_of,
    read_state,
    write_state,
)


class Readiness(threading.Thread):
    """Asks until the server is healthy and has generated once; `broken` says why it never will."""

    def __init__(self, base_url: str, timeout_s: float) -> None:
        super().__init__(daemon=True)
        self.base_url = base_url
        self.deadline = time.monotonic() + timeout_s
        self.ready = False
        self.broken: str | None = None

    def run(self) -> None:
        failures = 0
        while (left_s := self.deadline - time.monotonic()) > 0:
            try:
                if wire.ask(self.base_url.removesuffix("/v1") + "/health", timeout_s=2).status == 200:
                    model = wire.served_model(self.base_url, None, {}, timeout_s=5)["id"]
                    wire.generate_once(self.base_url, model, {}, timeout_s=max(left_s, 1))
                    self.ready = True
                    return
            except wire.NoAnswer as error:
                status = error.data["status"]
                # 503 is "not yet"; no status is "not listening", or it dies and its log says why
                if status not in (None, 503):
                    failures += 1
                if failures >= 3:
                    self.broken = f"it is healthy but does not generate: {error}"
                    return
            time.sleep(0.1)


class Supervisor:
    """Runs one server from its start to its end."""

    def __init__(self, spec: Spec, failures_before: int) -> None:
        self.spec = spec
        self.stopping = False
        self.failures_before = failures_before
        self.state = State(
            lane=spec.lane,
            token=spec.token,
            phase="starting",
            url=f"http://{HOST}:{spec.port}/v1",
            port=spec.port,
            argv=spec.argv,
            recipe=spec.recipe,
            supervisor=Identity.of(os.getpid()),
            owner=spec.owner,
            begun=time.time(),
            failures_in_a_row=failures_before,
            log=spec.log,
            memory=spec.memory,
        )

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: end at the next turn of the loop."""
        self.stopping = True

    def run(self) -> None:
        """Start the server and stay until it has ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        write_state(self.state)
        begun = time.monotonic()
        with open(self.spec.log, "ab") as log:
            try:
                server = subprocess.Popen(
                    self.spec.argv,
                    cwd=self.spec.folder,
                    env=self.spec.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,  # noqa: PLW1509 - no thread runs yet
                )
            except OSError as error:
                self.end("failed", f"{self.spec.argv[0]} cannot be started: {error.strerror}")
                return
        self.state.server = Identity.of(server.pid)
        write_state(self.state)
        readiness = Readiness(self.state.url, self.spec.timeout_s)
        readiness.start()
        memory = MemoryJournal(Path(self.spec.memory))
        while True:
            starting = self.state.phase == "starting"
            if self.stopping or (self.spec.owner and not self.spec.owner.alive()):
                why = None if self.stopping else f"its owner, process {self.spec.owner and self.spec.owner.pid}, ended"
                self.end("stopped", why)
                return
            if (code := server.poll()) is not None:
                self.state.exit_code = code
                self.end("failed" if starting else "died", logs.cause(Path(self.spec.log)))
                return
            if starting and readiness.ready:
                self.state.phase = "ready"
                self.state.boot_s = round(time.monotonic() - begun, 3)
                self.state.failures_in_a_row = 0
                write_state(self.state)
            elif starting and readiness.broken:
                self.end("failed", readiness.broken)
                return
            elif starting and not readiness.is_alive():
                self.end("failed", f"not ready after {self.spec.timeout_s:g} s; {self._last_line()}")
                return
            memory.note(self.state.server, every_s=1.0 if starting else 10.0)
            time.sleep(0.1 if starting else 0.25)

    def end(self, phase: Phase, cause: str | None) -> None:
        """Leave no process behind, then write down how it ended."""
        end_processes(processes_of(self.spec.token), self.spec.grace_s)
        self.state.phase = phase
        self.state.cause = cause
        self.state.ended = time.time()
        if phase in ("failed", "died"):
            self.state.failures_in_a_row = self.failures_before + 1
        write_state(self.state)

    def _last_line(self) -> str:
        lines = logs.tail_lines(Path(self.spec.log), 1)
        return f"its last line: {lines[0][:200]}" if lines else "its log is empty"


def _end_with_parent() -> None:
    if sys.platform == "linux":
        pr_set_pdeathsig = 1  # prctl(2)
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM)


def main(spec_path: Path) -> None:
    """Read the specification, step out of the caller's process tree, supervise."""
    spec = Spec.model_validate_json(spec_path.read_bytes())
    spec_path.unlink()
    before = read_state(spec.lane)
    if os.fork():
        os._exit(0)  # the caller reaps this one, and can never have the supervisor as a zombie
    Supervisor(spec, before.failures_in_a_row if before else 0).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
