"""`lanelab query` and `lanelab verify`: questions to the receipts, and whether they are whole."""

from __future__ import annotations

from pathlib import Path

import click

from lanelab import paths
from lanelab.cli.output import Answer, command
from lanelab.errors import NotFound


@command("query", 'lanelab query "SELECT size, median(decode_tok_s) FROM decode GROUP BY size"')
@click.argument("sql")
@click.option("--campaign", "-c", "campaigns", multiple=True, help="A campaign's name; default: all of them.")
@click.option("--run", "current_run", help="Show the receipts of this run in place of its step's latest good run.")
@click.option("--all-visibility", is_flag=True, help="Private receipts too.")
def query(sql: str, campaigns: tuple[str, ...], current_run: str | None, all_visibility: bool) -> Answer:
    """Ask one SELECT over receipts: views <kind>, <kind>_all and receipts."""
    from lanelab.receipts import views

    folders = [campaign_dir(name) for name in campaigns] or all_campaign_dirs()
    table = views.ask(folders, sql, current_run, private=all_visibility)
    return Answer(table.to_data(), table.to_text())


@command("verify", "lanelab verify mini")
@click.argument("campaign", required=False)
def verify(campaign: str | None) -> Answer:
    """Check every byte of the receipts, and the rest: digests, schemas, rows, runs, facts, claims, provenance."""
    from lanelab.publish import verifying
    from lanelab.receipts import verify as check

    check.also("facts", verifying.problems)

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
