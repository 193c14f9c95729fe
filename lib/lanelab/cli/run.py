"""`lanelab run`: one notebook, once, in a new folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from lanelab.cli.output import Answer, command, progress
from lanelab.errors import LabError, UsageError


class Seconds(click.FloatRange):
    """A finite number of seconds above zero: no limit is said by leaving the option out, not by `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. `nan` passes every comparison of a range and is turned down here."""
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a finite number of seconds; leave the option out for no limit", param, ctx)
        return seconds


SECONDS = Seconds(min=0, min_open=True)


def pairs(given: tuple[str, ...]) -> dict[str, str]:
    """`k=v` options as a mapping. Raises `UsageError`."""
    found: dict[str, str] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"-p {item!r} is no parameter (valid: NAME=VALUE, NAME a Python name)")
        if name in found:
            raise UsageError(f"-p {name} is given twice ({found[name]!r} and {text!r})")
        found[name] = text
    return found


@command("run", "lanelab run 04-decode --campaign here --lane mini -p preset=quick")
@click.argument("notebook", metavar="STEP_OR_NOTEBOOK")
@click.option("--campaign", help="Whose step it is; its folder keeps the run. Default: the notebook's own.")
@click.option("--lane", help="The lane to measure, by name or URL.")
@click.option("-p", "parameters", metavar="K=V", multiple=True, help="A parameter; its default's type decides.")
@click.option("--start-timeout-s", type=SECONDS, default=60.0, show_default=True, help="For the kernel to start.")
@click.option("--cell-timeout-s", type=SECONDS, help="For each cell. Default: none.")
@click.option("--timeout-s", type=SECONDS, help="For the whole run. Default: none.")
@click.option("-k", "--kernel", help="The Jupyter kernel. Default: the notebook's own.")
@click.option("--run-dir", type=click.Path(path_type=Path), help="Where the run's new folder is made.")
def run(
    notebook: str, campaign: str | None, lane: str | None, parameters: tuple[str, ...], start_timeout_s: float,
    cell_timeout_s: float | None, timeout_s: float | None, kernel: str | None, run_dir: Path | None,
) -> Answer:  # fmt: skip
    """Execute a step or any notebook once, in a new folder."""
    from lanelab import run as running

    order = running.Order(
        notebook, campaign, lane, pairs(parameters), {},
        running.Limits(start_timeout_s, cell_timeout_s, timeout_s), kernel, run_dir,
    )  # fmt: skip
    try:
        running.prepare(order)
    except LabError as error:
        progress(f"error: refused: {error}")
        data = {**running.refused(order, error).data(), "error": {"type": type(error).__name__, "message": str(error)}}
        return Answer(data, exit_code=2)
    result = running.run(order, say=progress)
    for warning in result.data()["warnings"]:
        progress(f"warning: {warning}")
    if result.status != "ok":
        progress(f"error: {result.status}: {result.reason}")
    return Answer(result.data(), f"{result.status}: {result.run_dir}", result.exit_code)
