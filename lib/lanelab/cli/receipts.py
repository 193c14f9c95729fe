"""`lanelab query` and `lanelab verify`: questions to the receipts, and whether they are whole."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from lanelab import paths
from lanelab.cli.numbers import Finite
from lanelab.cli.output import Answer, command
from lanelab.errors import NotFound, UsageError


@command("query", 'lanelab query "SELECT campaign, size, median(decode_tok_s) FROM decode GROUP BY ALL ORDER BY ALL"')
@click.argument("sql")
@click.option("--campaign", "-c", "campaigns", multiple=True, help="A campaign's name; default: all of them.")
@click.option("--run", "current_run", help="Show the receipts of this run in place of its step's latest good run.")
@click.option("--all-visibility", is_flag=True, help="Private receipts too.")
@click.option("--timeout-s", type=Finite(0.001), default=60.0, show_default=True, help="The query ends after that.")
@click.option("--rows-max", type=click.IntRange(1), default=100_000, show_default=True, help="More are only counted.")
def query(
    sql: str,
    campaigns: tuple[str, ...],
    current_run: str | None,
    all_visibility: bool,
    timeout_s: float,
    rows_max: int,
) -> Answer:
    """Ask one SELECT over receipts: views <kind>, <kind>_all and receipts."""
    from lanelab.receipts import views
    from lanelab.receipts.limits import Limits

    within = Limits.starting_now(timeout_s, rows_max)
    folders = [campaign_dir(name) for name in campaigns] or all_campaign_dirs()
    if current_run is not None:
        views.known_run(folders, current_run)
    table = views.ask(folders, sql, current_run, private=all_visibility, within=within)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return Answer(table.to_data(), table.to_text(width))


@command("verify", "lanelab verify mini")
@click.argument("campaign", required=False)
def verify(campaign: str | None) -> Answer:
    """Check every byte of the receipts, and the rest: digests, schemas, rows, runs, facts, claims, provenance."""
    from lanelab.publish import verifying
    from lanelab.receipts import verify as check

    check.also("facts", verifying.problems)

    if campaign is not None and not campaign.strip():
        raise UsageError("the campaign's name is empty (leave it out to verify all of them)")
    folders = [campaign_dir(campaign)] if campaign else all_campaign_dirs()
    report = check.campaigns(folders)
    return Answer(report.to_data(), report.to_text(), report.exit_code)


def all_campaign_dirs() -> list[Path]:
    """Every folder under data/campaigns, by name."""
    return sorted(path for path in paths.data("campaigns").iterdir() if path.is_dir() and path.name[0] != ".")


def campaign_dir(name: str) -> Path:
    """The folder of that campaign. Raises `NotFound`."""
    for path in all_campaign_dirs():
        if path.name == name:
            return path
    raise NotFound("campaign", name, (path.name for path in all_campaign_dirs()))
