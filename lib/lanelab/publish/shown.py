"""What a notebook cell displays: figure, table or sentence, then a line with its data and its command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanelab.publish import style
from lanelab.publish.again import again, first_command
from lanelab.publish.exhibit import Figure, Table
from lanelab.publish.markdown_table import common_note, pipe_table
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, busy_note

DATA = "/data"  # where the CSV and JSON files stand on the site


@dataclass(frozen=True)
class Shown:
    """One output: its forms by MIME type, and metadata (for a figure `alt`, the finding)."""

    data: dict[str, str]
    metadata: dict[str, Any]

    def display(self) -> None:
        """Show it in the running notebook."""
        from IPython.display import display

        display(self.data, raw=True, metadata=self.metadata)


def figure(made: Figure, reader: Reader, *, lane: str | None, site: bool) -> list[Shown]:
    """A figure and its data line, or a note where nothing is measured yet."""
    rows = made.rows(reader)
    if not rows:
        return [_nothing(made, reader.campaign, lane)]
    alt = made.alt(rows)
    svg = style.svg_of(made.draw(rows), f"{reader.campaign}-{made.name}", alt)
    about = {"exhibit": f"figure {made.name}", "alt": alt}
    return [
        Shown({"image/svg+xml": svg, "text/plain": alt}, {**about, "image/svg+xml": {"alt": alt}}),
        data_line(made, rows, reader, lane=lane, site=site, note=busy_note(rows)),
    ]


def table(made: Table, reader: Reader, *, lane: str | None, site: bool) -> list[Shown]:
    """A table and its data line, or a note where nothing is measured yet."""
    rows = made.rows(reader)
    if not rows:
        return [_nothing(made, reader.campaign, lane)]
    text = pipe_table(made, rows, campaign=reader.campaign, site=site)
    note = " ".join(part for part in (common_note(made, rows), made.note(rows), busy_note(rows)) if part)
    return [
        _markdown(text, f"table {made.name}"),
        data_line(made, rows, reader, lane=lane, site=site, note=note),
    ]


def data_line(
    made: Figure | Table, rows: Rows, reader: Reader, *, lane: str | None, site: bool, note: str = ""
) -> Shown:
    """What holds for all rows, links to CSV and JSON (on the site) and the command that measures them again."""
    stem = f"{DATA}/{reader.campaign}/{'fig' if isinstance(made, Figure) else 'tbl'}-{made.name}"
    links = f"Data: [CSV]({stem}.csv), [JSON]({stem}.json)." if site else ""
    text = " ".join(part for part in (note, links, again(made, rows, reader, lane)) if part)
    return _markdown(f"::: {{.data-links}}\n{text}\n:::" if site else text, f"data {made.name}")


def sentence(text: str) -> Shown:
    """A sentence as Markdown."""
    return _markdown(text, "say")


def _nothing(made: Figure | Table, campaign: str, lane: str | None) -> Shown:
    command = first_command(made, campaign, lane)
    how = f": run `{command}`" if command else f" of kind `{made.view}`"
    return _markdown(f"*Nothing measured yet*{how}.", f"nothing {made.name}")


def _markdown(text: str, what: str) -> Shown:
    return Shown({"text/markdown": text, "text/plain": text}, {"exhibit": what})
