"""`python -m lanelab.importers.mimo26 FOLDER [--into CAMPAIGN_FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lanelab import paths
from lanelab.errors import LabError
from lanelab.importers.mimo26.collect import import_into
from lanelab.importers.mimo26.source import CAMPAIGN


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--into", type=click.Path(path_type=Path), help="Campaign folder; the tracked one if left out.")
def main(folder: Path, into: Path | None) -> None:
    """Write the receipts of the published campaign that are missing."""
    try:
        written, stood = import_into(folder, into or paths.data("campaigns", CAMPAIGN))
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(f"{len(written)} receipts written, {len(stood)} stood already")


if __name__ == "__main__":
    main()
