"""The command that stands beside a figure or table: copied into a shell, it makes those rows again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from lanelab.publish.exhibit import Figure, Table
from lanelab.publish.reader import Reader, quoted
from lanelab.publish.summary import Rows


def again(made: Figure | Table, rows: Rows, reader: Reader, lane: str | None) -> str:
    """A sentence with the command: the plan's arithmetic, the step or workload, or the query.

    What others published was measured on a lane that is not here, so the command is for the reader's own.
    """
    if not made.rerun:
        query = f"SELECT * FROM {made.view} WHERE campaign = '{reader.campaign}'"  # noqa: S608 (text to copy)
        return f'Read it from the receipts: `lanelab query "{query}"`'
    about = _receipt(made, rows, reader)
    if made.view == "plan" and about:
        return f"Compute it again: `{plan_command(about)}`"
    if any(str(row.get("origin", "")).startswith("published") for row in rows):
        return f"Measure the same on a lane of yours: `{made.rerun.format(lane='LANE')}`"
    if about and about["step"] and about["run"]:
        return f"Measure it again: `lanelab campaign run {reader.campaign} --rerun {about['step']}`"
    return f"Measure it again: `{first_command(made, reader.campaign, lane)}`"


def first_command(made: Figure | Table, campaign: str, lane: str | None) -> str:
    """The command that fills an exhibit that has no rows yet; empty while there is none."""
    return f"{made.rerun.format(lane=lane or 'LANE')} --campaign {campaign}" if made.rerun else ""


def plan_command(about: Mapping[str, Any]) -> str:
    """`lanelab plan` with the options that a plan's receipt was computed with."""
    given: dict[str, Any] = about["parameters"]
    words = ["lanelab", "plan", str(about["model"]), "--machine", str(about["machine"])]
    for name, value in sorted(given.items()):
        if name == "dtypes":
            words += [word for role, dtype in value for word in ("--set", f"{role}={dtype}")]
        elif value is not None:
            words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _receipt(made: Figure | Table, rows: Rows, reader: Reader) -> dict[str, Any] | None:
    """Step, run, model, machine and parameters of the first receipt behind the rows."""
    ids = [item for row in rows for item in row.get("receipts") or []]
    if not ids:
        return None
    query = f"SELECT step, run, model, machine, parameters FROM {quoted(made.view + '_all')} WHERE receipt = ? LIMIT 1"  # noqa: S608
    found = reader.select(query, [ids[0]])
    if not found:
        return None
    parameters = found[0]["parameters"]
    return {**found[0], "parameters": json.loads(parameters) if isinstance(parameters, str) else parameters or {}}
