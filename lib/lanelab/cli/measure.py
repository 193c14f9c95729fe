"""`lanelab measure`: run a workload on a lane and keep its receipt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import yaml

from lanelab import campaign as campaigns
from lanelab import measure as measuring
from lanelab.cli.output import Answer, command, progress
from lanelab.errors import UsageError
from lanelab.receipts import Receipt


@click.group("measure", short_help="Workloads: measure a lane and keep the receipt.")
def measure() -> None:
    """Each workload sends requests of its own to a lane that is up and writes one receipt."""


def _options(function: Callable[..., Answer]) -> Callable[..., Answer]:
    for option in reversed((
        click.option("--lane", required=True, help="A lane's name, or the URL of a server."),
        click.option("--campaign", default=campaigns.HERE, show_default=True, help="Where the receipt is kept."),
        click.option("--preset", help="A named set of parameters: quick (default) or full."),
        click.option("-p", "--parameter", "given", multiple=True, metavar="NAME=VALUE", help="Replace one parameter."),
        click.option("--resume/--no-resume", default=True, help="Keep rows of an interrupted run. [default: resume]"),
    )):  # fmt: skip
        function = option(function)
    return function


def _run(workload: str, lane: str, campaign: str, preset: str | None, given: tuple[str, ...], resume: bool) -> Answer:
    folder = campaigns.folder(campaign)
    if campaign != campaigns.HERE:
        campaigns.load(campaign)
    receipt = measuring.run(
        workload, campaign_dir=folder, campaign=campaign, lane=lane, preset=preset, parameters=_parsed(given),
        resume=resume, say=progress,
    )  # fmt: skip
    return Answer(
        {
            "receipt": receipt.id, "kind": receipt.kind, "campaign": campaign, "lane": receipt.lane,
            "state": receipt.labels.state, "rows": receipt.rows, "digest": receipt.digest,
        },
        _text(receipt),
    )  # fmt: skip


def _parsed(given: tuple[str, ...]) -> dict[str, Any]:
    found = {}
    for one in given:
        name, equals, text = one.partition("=")
        try:
            found[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            equals = ""
        if not equals or not name:
            raise UsageError(f"parameter {one!r} is not NAME=VALUE (VALUE in YAML, as in repeats=3 or streams=[1,4])")
    return found


def _text(receipt: Receipt) -> str:
    count = len(receipt.rows) if isinstance(receipt.rows, list) else receipt.rows.count
    return f"{receipt.id}\n{count} rows, {receipt.labels.state}"


@command("decode", "lanelab measure decode --lane mini --preset quick")
@_options
def decode(lane: str, campaign: str, preset: str | None, given: tuple[str, ...], resume: bool) -> Answer:
    """Time to first token and decode speed by prompt size."""
    return _run("decode", lane, campaign, preset, given, resume)


@command("knee", "lanelab measure knee --lane mini --preset quick")
@_options
def knee(lane: str, campaign: str, preset: str | None, given: tuple[str, ...], resume: bool) -> Answer:
    """Aggregate and per-stream speed by concurrency."""
    return _run("knee", lane, campaign, preset, given, resume)


for _command in (decode, knee):
    measure.add_command(_command)
