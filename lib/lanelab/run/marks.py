"""The marks in a stored notebook, made true.

papermill marks every cell `completed` when a kernel dies or a limit strikes. After a run the marks
are set again from what really ran, and the cell that was stopped says why in its own output.
"""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_output

from lanelab.run.record import Cells
from lanelab.run.verdict import Verdict

_NAMES = {"timeout": "TimedOut", "interrupted": "Interrupted", "died": "KernelDied"}


def settle(notebook: NotebookNode, cells: Cells, verdict: Verdict, run_id: str) -> None:
    """Set papermill's marks, the stopped cell's output and the notebook's own status."""
    ended = False
    for cell in notebook.cells:
        mark = cell.metadata.setdefault("papermill", NotebookNode())
        if cell.id == cells.stopped_in:
            ended = True
            mark.update(status="failed", exception=True)
            _say_why(cell, verdict)
        elif cell.id in cells.not_executed or ended:
            ended = True
            mark.update(status="pending", exception=None, start_time=None, end_time=None, duration=None)
            if cell.cell_type == "code":
                cell["execution_count"] = None
                cell["outputs"] = []
        else:
            mark.update(status="completed", exception=False)
    notebook.metadata.papermill["exception"] = True if verdict.status != "ok" else None
    notebook.metadata.lanelab["run"] = NotebookNode(
        id=run_id, status=verdict.status, cause=verdict.cause, reason=verdict.why
    )


def _say_why(cell: NotebookNode, verdict: Verdict) -> None:
    """A cell that the runner stopped did not fail by a user's KeyboardInterrupt."""
    name = _NAMES.get(verdict.status)
    if name is None:
        return
    why = verdict.why or verdict.status
    for output in cell.outputs:
        if output.output_type == "error" and output.ename == "KeyboardInterrupt":
            lines = [line.replace("KeyboardInterrupt", name) for line in output.traceback]
            output.update(ename=name, evalue=why, traceback=[*lines[:-1], f"{name}: {why}"])
            return
    cell.outputs.append(new_output("error", ename=name, evalue=why, traceback=[f"{name}: {why}"]))
