"""A papermill engine that ends in time: limits, signals and dead kernels come out as a `Verdict`.

papermill's own engine can be stopped only by an exception somewhere in its event loop, and marks
every cell `completed` on the way out. This one runs the cells in a loop of its own, looks at signals
and limits ten times a second, interrupts the kernel, waits, then kills it. Which cells ran is taken
from the kernel's replies and never from papermill's marks.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from papermill.engines import Engine, papermill_engines

from lanelab.run.client import Client
from lanelab.run.source import runs
from lanelab.run.stopping import Stopper
from lanelab.run.streams import CellStreams
from lanelab.run.verdict import Limits, Verdict, plain

LOOK_EVERY_S = 0.1
INTERRUPT_GRACE_S = 2.0  # what a cell gets to end after it was interrupted
SHUTDOWN_GRACE_S = 3.0
SAVE_EVERY_S = 10.0
ENGINE = "lanelab"


class Halt(Exception):
    """Ends the loop over the cells."""

    def __init__(self, status: str, cause: str, why: str) -> None:
        super().__init__(why)
        self.verdict = Verdict(status, cause, plain(why))


@dataclass
class Session:
    """One execution: what it may use, and what it found out."""

    limits: Limits
    stopper: Stopper
    working_dir: Path
    environment: dict[str, str]
    log: IO[str]
    save: Callable[[NotebookNode], None]
    say: Callable[[str], None]
    before_shutdown: Callable[[int | None], None]
    started: float = field(default_factory=time.monotonic)
    streams: CellStreams = field(default_factory=CellStreams)
    executed: list[str] = field(default_factory=list)
    stopped_in: str | None = None
    cell_seconds: dict[str, float] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=lambda: Verdict("ok"))
    kernel_exit: int | None = None
    kernel_pid: int | None = None
    _client: Client | None = None

    async def drive(self, nb_man: Any, kernel_name: str) -> None:
        """Run all cells, or as many as the limits, the signals and the kernel allow."""
        notebook = nb_man.nb
        client = self._client = Client(
            nb_man,
            self.streams,
            lambda line: self.say(f"    {line}"),
            kernel_name=kernel_name,
            startup_timeout=int(self.limits.start_s) + 5,
            log_output=False,
        )
        try:
            await self._start(client)
            total = sum(runs(cell) for cell in notebook.cells)
            for index, cell in enumerate(notebook.cells):
                await self._cell(nb_man, client, index, cell, total)
        except Halt as halt:
            self.verdict = halt.verdict
        finally:
            self.streams.put()
            await self._end_kernel(client)

    async def _start(self, client: Client) -> None:
        client.create_kernel_manager()
        client.km.shutdown_wait_time = SHUTDOWN_GRACE_S
        limit = self.limits.start_s

        async def start() -> None:
            await client.async_start_new_kernel(
                env=self.environment, cwd=str(self.working_dir), stdout=self.log, stderr=self.log
            )
            provisioner = client.km.provisioner
            self.kernel_pid = getattr(provisioner, "pid", None)
            await client.async_start_new_kernel_client()

        def late() -> Halt | None:
            if time.monotonic() - self.started > limit:
                return Halt("timeout", "start_timeout", f"the kernel did not start within {limit:g} s")
            return self._stop_wanted("while the kernel started")

        task = asyncio.ensure_future(start())
        halt = await self._watch(task, late)
        if halt is not None:
            task.cancel()
            with contextlib.suppress(BaseException):
                await asyncio.wait_for(task, 1)
            raise halt
        error = task.exception()
        if error is not None:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise Halt("died", "kernel_never_started", f"the kernel did not start: {why}")

    async def _cell(self, nb_man: Any, client: Client, index: int, cell: NotebookNode, total: int) -> None:
        if cell.cell_type != "code" or not cell.source.strip():
            return
        if halt := self._stop_wanted(f"before cell {cell.id!r}"):
            raise halt
        self.streams.begin(cell.id)
        nb_man.cell_start(cell, index)
        began = time.monotonic()
        client.left_early = False

        def late() -> Halt | None:
            cell_s = self.limits.cell_s
            if cell_s is not None and time.monotonic() - began > cell_s:
                return Halt("timeout", "cell_timeout", f"cell {cell.id!r} passed its limit of {cell_s:g} s")
            return self._stop_wanted(f"in cell {cell.id!r}")

        task = asyncio.ensure_future(client.async_execute_cell(cell, index))
        halt = await self._watch(task, late, lambda: self._keep(nb_man))
        if halt is not None:
            await self._interrupt(client, task)
        else:
            halt = self._ended(task, client, cell, nb_man)
        seconds = time.monotonic() - began
        self.streams.put()
        if runs(cell):
            self.cell_seconds[cell.id] = round(seconds, 3)
            number = len(self.executed) + 1
            if halt is None:
                self.executed.append(cell.id)
                self.say(f"[{number}/{total}] {cell.id}: {seconds:.1f} s")
            else:
                # sent to the kernel and never answered, whether or not the kernel had time to say that it began
                self.stopped_in = cell.id
                self.say(f"[{number}/{total}] {cell.id}: {halt.verdict.status} after {seconds:.1f} s")
        if halt is not None:
            raise halt
        nb_man.cell_complete(cell, index)
        self._keep(nb_man)

    def _ended(self, task: asyncio.Future[Any], client: Client, cell: NotebookNode, nb_man: Any) -> Halt | None:
        error = task.exception()
        if error is None:
            if client.left_early:
                return self._exit(cell, "exit()", nb_man)
            if cell.execution_count is None:
                return Halt("failed", "not_executed", f"cell {cell.id!r} has no execution count after it ran")
            return None
        if isinstance(error, DeadKernelError):
            return Halt("died", "kernel_died", f"the kernel died in cell {cell.id!r}")
        if isinstance(error, CellExecutionError):
            if error.ename == "SystemExit":
                return self._exit(cell, f"SystemExit({error.evalue[:200]})", nb_man)
            text = plain(f"{error.ename[:200]}: {error.evalue[:2000]}")
            return Halt("failed", "error", f"{text[:600]} (cell {cell.id!r})")
        return Halt("failed", "runner_error", f"cell {cell.id!r}: {type(error).__name__}: {str(error)[:600]}")

    def _exit(self, cell: NotebookNode, how: str, nb_man: Any) -> Halt:
        cells = [item.id for item in nb_man.nb.cells if runs(item)]
        left = len(cells) - cells.index(cell.id) - 1 if cell.id in cells else len(cells)
        return Halt(
            "failed",
            "exited_early",
            f"exited_early: the notebook left by {how} in cell {cell.id!r}; {left} cell{'' if left == 1 else 's'}"
            " did not run",
        )

    def _stop_wanted(self, where: str) -> Halt | None:
        if self.stopper.signum is not None:
            name = signal.Signals(self.stopper.signum).name
            return Halt("interrupted", name.lower(), f"the runner got {name} {where}")
        run_s = self.limits.run_s
        if run_s is not None and time.monotonic() - self.started > run_s:
            return Halt("timeout", "run_timeout", f"the run passed its budget of {run_s:g} s {where}")
        return None

    async def _watch(
        self, task: asyncio.Future[Any], late: Callable[[], Halt | None], keep: Callable[[], None] | None = None
    ) -> Halt | None:
        """Wait for the task; a `Halt` if it is to be given up first."""
        kept = time.monotonic()
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK_EVERY_S)
            if not task.done() and (halt := late()) is not None:
                return halt
            if keep is not None and time.monotonic() - kept > SAVE_EVERY_S:
                keep()
                kept = time.monotonic()
        return None

    def _keep(self, nb_man: Any) -> None:
        self.streams.put()
        self.save(nb_man.nb)

    async def _interrupt(self, client: Client, task: asyncio.Future[Any]) -> None:
        with contextlib.suppress(Exception):
            await client.km.interrupt_kernel()
        done, _ = await asyncio.wait({task}, timeout=INTERRUPT_GRACE_S)
        if not done:
            task.cancel()
        with contextlib.suppress(BaseException):
            await asyncio.wait_for(task, 1)

    async def _end_kernel(self, client: Client) -> None:
        manager = client.km
        if manager is None:
            return
        provisioner = manager.provisioner
        process = getattr(provisioner, "process", None)
        if process is not None:
            self.kernel_exit = process.poll()
        self.before_shutdown(self.kernel_pid)
        client.shutdown_kernel = "graceful" if self.verdict.status == "ok" else "immediate"
        with contextlib.suppress(Exception):
            await client._async_cleanup_kernel()


class LabEngine(Engine):  # type: ignore[misc]
    """papermill's hook: its manager keeps times and marks, `Session` runs the cells."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, *, session: Session, **_: Any) -> None:
        """See `Session.drive`."""
        _complete(session.drive(nb_man, kernel_name))


def _complete(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, in a thread of its own where an event loop already runs (inside a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


papermill_engines.register(ENGINE, LabEngine)


def execute(notebook: NotebookNode, kernel_name: str, session: Session) -> None:
    """Execute a parameterised notebook in place; how it went is in `session`."""
    papermill_engines.execute_notebook_with_engine(
        ENGINE, notebook, kernel_name, output_path=None, progress_bar=False, autosave_cell_every=0, session=session
    )
