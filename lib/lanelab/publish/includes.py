"""Parts of a post that a campaign's files give whole: status line, claims, corrections, boots, gaps.

They are written beside the receipts browser and taken into a post by an include, so that a post has
them without a notebook of its own:

    {{< include ../../receipts/<campaign>/_claims.md >}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lanelab.publish import register
from lanelab.publish.exhibit import load_all, table_named
from lanelab.publish.facts import Fact
from lanelab.publish.ledger import date_of
from lanelab.publish.markdown_table import common_note, pipe_table
from lanelab.publish.provenance import dates
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.receipts import Receipt

# What a campaign may leave out, and the kinds that would show it.
GAPS = (
    (("boot",), "Boots: how the server came up, and which attempts failed."),
    (("decode",), "Decode speed and time to first token by prompt size."),
    (("knee",), "Aggregate speed by the number of streams."),
    (("needle",), "Long context: whether a fact far back is found, and what it costs."),
    (("agent", "agent-task"), "Work of an agent: short turns with tool calls."),
    (("coverage", "routing-counts"), "Routing: which cells the traffic picks, and what a hot list would serve."),
    (("profile",), "Where the time of a step goes."),
    (("quality", "suite"), "Quality: whether the answers are as good as the reference's."),
)


def texts(campaign_dir: Path, receipts: list[Receipt], facts: Mapping[str, Fact]) -> dict[str, str]:
    """File name to Markdown of every part. Raises what claims, corrections and facts raise."""
    load_all()
    reader = Reader(campaign_dir)
    boots = table_named("boots")
    rows = boots.rows(reader)
    claims = register.claims_table(campaign_dir, facts)
    corrections = register.corrections_table(campaign_dir, facts, reader)
    note = " ".join(part for part in (common_note(boots, rows), boots.note(rows)) if part)
    return {
        "_status.md": status(campaign_dir.name, receipts),
        "_claims.md": claims or "No claims are written down yet.",
        "_corrections.md": corrections or "Nothing has been corrected so far.",
        "_boots.md": pipe_table(boots, rows, campaign=campaign_dir.name) + (f"\n\n{note}" if note else "")
        if rows
        else "No boot is on record: the lane was up, or its boot wrote no receipt.",
        "_gaps.md": gaps(receipts),
    }  # fmt: skip


def status(campaign: str, receipts: list[Receipt]) -> str:
    """Origins, dates, machine, model and lane of the receipts, in one line."""
    counted = [receipt for receipt in receipts if receipt.kind != "retraction"]
    badges = [f"[{origin}]{{.badge .{origin}}}" for origin in sorted({receipt.origin for receipt in counted})]
    if any(receipt.labels.emulated for receipt in counted):
        badges.append("[emulated]{.badge .emulated}")
    days = sorted({day for receipt in counted if (day := date_of(receipt))})
    names = [
        (what, sorted({value for receipt in counted if (value := getattr(receipt, what))}))
        for what in ("machine", "model", "lane")
    ]
    parts = [
        " ".join(badges), dates(days), *(f"{what} {', '.join(f'`{one}`' for one in found)}" for what, found in names if found),
        f'[{number_text(len(counted))} receipt{"" if len(counted) == 1 else "s"}](/receipts/{campaign}/index.html "every public receipt"){{.fact .derived}}',
        f"[all facts](/receipts/{campaign}/facts.html)",
    ]  # fmt: skip
    return "::: {.status}\n" + " · ".join(part for part in parts if part) + "\n:::"


def gaps(receipts: list[Receipt]) -> str:
    """What has no receipt in this campaign, as a list."""
    kinds = {receipt.kind for receipt in receipts}
    open_ones = [says for wanted, says in GAPS if not kinds & set(wanted)]
    return "\n".join(f"- {says}" for says in open_ones) or "Every kind of measurement has at least one receipt."
