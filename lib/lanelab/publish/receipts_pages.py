"""The receipts browser: one generated page a receipt, an index and a facts page a campaign.

A page shows where the figures came from (origin, dates, machine, recipe, lane, state, environment,
source), the rows with their units, the digest, who supersedes or retracts whom, and links to the
receipt's own bytes. Private receipts get no page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lanelab.publish import facts as facts_module
from lanelab.publish import includes
from lanelab.publish.facts import Fact
from lanelab.publish.generated import put
from lanelab.publish.ledger import date_of, prove
from lanelab.publish.provenance import anchor, dates, escaped, fact_link, receipt_link, short_digest
from lanelab.publish.quantity import number_text
from lanelab.publish.variables import DRAFTS
from lanelab.receipts import Receipt, Store, read_receipt, utc_text

ROWS_SHOWN = 40  # more stand in the receipt itself


def write(site_dir: Path, campaigns: Iterable[Path], drafts: Iterable[str] = DRAFTS) -> list[Path]:
    """Write `receipts/<campaign>/<id>.qmd`, `index.qmd`, `facts.qmd` and the receipts' own files.

    Pages of receipts that are gone are removed. Returns what stands there now.
    """
    folder = site_dir / "receipts"
    kept: set[Path] = set()
    names = []
    for campaign_dir in campaigns:
        kept |= _campaign(folder / campaign_dir.name, campaign_dir, campaign_dir.name not in set(drafts))
        names.append(campaign_dir.name)
    kept.add(put(folder / "index.qmd", _index_of_all(names)))
    for old in sorted(folder.rglob("*")):
        if old.is_file() and old not in kept:
            old.unlink()
    return sorted(kept)


def _campaign(folder: Path, campaign_dir: Path, strict: bool) -> set[Path]:
    store = Store(campaign_dir)
    found: list[tuple[Path, Receipt]] = []
    for path in store.paths():
        receipt = read_receipt(path)
        prove(path, receipt)
        if receipt.visibility == "public":
            found.append((path, receipt))
    after = {receipt.supersedes: receipt.id for _, receipt in found if receipt.supersedes}
    retracted = {
        str(row["retracts"]): (receipt.id, str(row["reason"]))
        for _, receipt in found if receipt.kind == "retraction" for row in store.rows(receipt)
    }  # fmt: skip
    evaluated = facts_module.evaluated(campaign_dir, strict=strict)
    uses: dict[str, list[Fact]] = {}
    for fact in evaluated.values():
        for receipt_id in fact.receipts:
            uses.setdefault(receipt_id, []).append(fact)
    kept = set()
    for path, receipt in found:
        rows = store.rows(receipt)
        text = page(receipt, rows, uses.get(receipt.id, []), after.get(receipt.id), retracted.get(receipt.id))
        kept.add(put(folder / f"{receipt.id}.qmd", text))
        kept.add(put(folder / f"{receipt.id}.json", path.read_bytes().decode()))
    kept.add(put(folder / "index.qmd", index(campaign_dir.name, [receipt for _, receipt in found], retracted, after)))
    kept.add(put(folder / "facts.qmd", facts_page(campaign_dir.name, evaluated)))
    parts = includes.texts(campaign_dir, [receipt for _, receipt in found], evaluated)
    kept |= {put(folder / name, text + "\n") for name, text in parts.items()}
    return kept


def _front(title: str, about: str) -> str:
    return (
        f"---\ntitle: {json.dumps(title, ensure_ascii=False)}\ndescription: {json.dumps(about, ensure_ascii=False)}\n"
        "toc: false\nsearch: false\n---\n\n"
    )


def page(
    receipt: Receipt, rows: list[dict[str, Any]], uses: list[Fact], after: str | None, retracted: tuple[str, str] | None
) -> str:
    """The page of one receipt as Markdown."""
    parts = [_front(receipt.id, f"{receipt.origin} receipt of kind {receipt.kind}, campaign {receipt.campaign}")]
    if retracted:
        parts.append(f"**Retracted** by {receipt_link(receipt.campaign, retracted[0])}: {_code(retracted[1])}\n")
    if after:
        parts.append(f"**Superseded** by {receipt_link(receipt.campaign, after)}.\n")
    parts.append(_facts_of(receipt))
    if uses:
        links = ", ".join(f"`{fact.name}` {fact_link(fact)}" for fact in uses)
        parts.append(f"## Facts that read it\n\n{links}\n")
    parts.append(_rows_of(receipt, rows))
    for title, value in (("Parameters", receipt.parameters), ("Environment", _present(receipt.environment.model_dump())),
                         ("Evidence of its state", receipt.labels.evidence)):  # fmt: skip
        if value:
            parts.append(
                f"## {title}\n\n```json\n{json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)}\n```\n"
            )
    parts.append(
        f"The file: [`{receipt.id}.json`](/receipts/{receipt.campaign}/{receipt.id}.json). "
        "The digest guards against accidents, not against forgery: whoever can change a receipt can compute a new one.\n"
    )
    return "\n".join(parts)


def _present(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item}


def _facts_of(receipt: Receipt) -> str:
    recipe = receipt.recipe
    source = receipt.source
    commit = f"{source.git_commit}{' (with local changes)' if source.git_dirty else ''}" if source.git_commit else None
    workload = f"{source.workload} {source.workload_version or ''}".strip() if source.workload else None
    pairs = [
        ("origin", receipt.origin), ("emulated", receipt.labels.emulated), ("kind", f"{receipt.kind}, version {receipt.kind_version}"),
        ("started", utc_text(receipt.started) if receipt.started else None),
        ("finished", utc_text(receipt.finished) if receipt.finished else None),
        ("machine", receipt.machine), ("model", receipt.model), ("lane", receipt.lane),
        ("recipe", f"{recipe.name}{f', {recipe.digest}' if recipe.digest else ''}" if recipe else None),
        ("boot", receipt.boot), ("step", receipt.step), ("run", receipt.run), ("state", receipt.labels.state),
        ("workload", workload), ("notebook", source.notebook), ("commit", commit), ("source", source.citation),
        ("path in the source", source.path), ("note", source.note), ("supersedes", receipt.supersedes), ("digest", receipt.digest),
    ]  # fmt: skip
    lines = ["| field | value |", "| :-- | :-- |"]
    return "\n".join([*lines, *(f"| {name} | {_words(name, value)} |" for name, value in pairs if value)]) + "\n"


def _words(name: str, value: object) -> str:
    """Sentences wrap; names, times and digests are code."""
    text = " ".join(str(value).split()).replace("|", "¦")
    return escaped(text) if name in ("source", "path in the source", "note", "emulated") else _code(value)


def _code(value: object) -> str:
    text = " ".join(str(value).split()).replace("|", "¦").replace("`", "'")
    return f"`{text}`" if text else ""


def _rows_of(receipt: Receipt, rows: list[dict[str, Any]]) -> str:
    names = [
        name
        for name in dict.fromkeys(key for row in rows for key in row)
        if any(row.get(name) not in (None, [], "") for row in rows)
    ]
    if not rows or not names:
        return "## Rows\n\nThe receipt has no rows.\n"
    heads = [f"{escaped(name)}{_unit(receipt.units.get(name))}" for name in names]
    text_columns = {name for name in names if any(isinstance(row.get(name), (str, list, dict)) for row in rows)}
    lines = [
        "| " + " | ".join(heads) + " |",
        "| " + " | ".join(":--" if name in text_columns else "--:" for name in names) + " |",
        *("| " + " | ".join(_value(row.get(name)) for name in names) + " |" for row in rows[:ROWS_SHOWN]),
    ]
    more = f"\n{number_text(len(rows) - ROWS_SHOWN)} more rows stand in the file.\n" if len(rows) > ROWS_SHOWN else ""
    return f"## Rows ({number_text(len(rows))})\n\n" + "\n".join(lines) + "\n" + more


def _unit(unit: str | None) -> str:
    return f", {escaped(unit)}" if unit not in (None, "1") else ""


def _value(value: Any) -> str:
    if value is None or value == []:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if value != int(value) or abs(value) > 1e15 else str(int(value))
    if isinstance(value, (list, dict)):
        return _code(json.dumps(value, ensure_ascii=False))
    return _code(value)


def index(campaign: str, receipts: list[Receipt], retracted: dict[str, tuple[str, str]], after: dict[str, str]) -> str:
    """The receipts of one campaign by kind."""
    parts = [
        _front(f"Receipts of {campaign}", f"Every public receipt of campaign {campaign}, by kind"),
        f"Every public receipt of this campaign, by kind. [Its facts](/receipts/{campaign}/facts.html) are read from them. "
        "Ask them yourself with `lanelab query`.\n",
    ]
    for kind in sorted({receipt.kind for receipt in receipts}):
        these = [receipt for receipt in receipts if receipt.kind == kind]
        parts.append(
            f"## {kind} ({number_text(len(these))})\n\n| receipt | origin | date | boot or lane | state | digest |"
        )
        parts.append("| :-- | :-- | :-- | :-- | :-- | :-- |")
        for one in these:
            marks = " **retracted**" if one.id in retracted else " superseded" if one.id in after else ""
            where = one.boot or one.lane or ""
            origin = one.origin + (", emulated" if one.labels.emulated else "")
            parts.append(
                f"| {receipt_link(campaign, one.id, text=one.id)}{marks} | {origin} | {date_of(one)} | {_code(where)} | "
                f"{one.labels.state} | `{short_digest(one.digest or '')}` |"
            )
        parts.append("")
    return "\n".join(parts)


def facts_page(campaign: str, evaluated: dict[str, Fact]) -> str:
    """Every fact of a campaign with its query and receipts."""
    parts = [
        _front(f"Facts of {campaign}", f"Every number of the posts of {campaign}, with its query and receipts"),
        f"Every number that the posts of this campaign use, with its query. The receipts: [index](/receipts/{campaign}/index.html).\n",
    ]
    for name, fact in evaluated.items():
        ids = ", ".join(receipt_link(campaign, receipt_id) for receipt_id in fact.receipts[:20])
        more = f" and {len(fact.receipts) - 20} more" if len(fact.receipts) > 20 else ""
        about = [
            f"## `{name}` {{#{anchor(name)}}}\n",
            f"{fact_link(fact)} {_code(fact.says)}\n" if fact.receipts else "*Nothing measured yet.*\n",
        ]
        if fact.receipts:
            when = dates(fact.dates)
            mixed = f" (from {', '.join(fact.origins)})" if fact.origins != [fact.origin] else ""
            about.append(
                f"- origin: {fact.origin}{mixed}{', emulated' if fact.emulated else ''}{f', `{when}`' if when else ''}"
            )
            about.append(f"- receipts: {ids}{more}")
            if fact.sql:
                about.append(f"- query: {_code(fact.sql)}")
        parts.append("\n".join(about) + "\n")
    if not evaluated:
        parts.append("This campaign has no facts yet.\n")
    return "\n".join(parts)


def _index_of_all(campaigns: list[str]) -> str:
    lines = [_front("Receipts", "The records behind every number of this site")]
    lines.append("A receipt is the immutable record of one measurement. Every number on this site links to one.\n")
    lines += [f"- [{campaign}](/receipts/{campaign}/index.html)" for campaign in campaigns]
    return "\n".join(lines) + "\n"
