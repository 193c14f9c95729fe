"""Claims and corrections: what a campaign believes, on what evidence, and what it took back.

`claims.yaml` maps a name to a claim with its state; `corrections.yaml` to a dated change whose old
value stays visible. Their sentences follow the rule of all prose: a number is a `{fact}`. Evidence
is a list of facts or receipts, and both must exist.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel

from lanelab.errors import BadFile, LabError, NotFound
from lanelab.publish.facts import Fact
from lanelab.publish.ledger import Ledger
from lanelab.publish.provenance import escaped, fact_link, receipt_link
from lanelab.publish.quantity import exact_digits, number_text, with_unit
from lanelab.publish.reader import Reader
from lanelab.publish.say import said
from lanelab.yamlfile import load_yaml, read_yaml

Sentence = Annotated[str, Field(min_length=1)]
STATES = ("open", "supported", "disproved", "parked")


class Strict(BaseModel):
    """Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Claim(Strict):
    """A hypothesis with its evidence and state."""

    says: Sentence
    state: Literal["open", "supported", "disproved", "parked"]
    evidence: list[str] = []  # facts or receipt ids
    note: str = ""
    changed: datetime.date | None = None  # when the state last changed


class Correction(Strict):
    """A dated, public change of an earlier claim."""

    date: datetime.date
    was: Sentence
    now: Sentence
    why: str = ""
    evidence: list[str] = []


class ClaimsFile(RootModel[dict[str, Claim]]):
    """claims.yaml."""


class CorrectionsFile(RootModel[dict[str, Correction]]):
    """corrections.yaml."""


def claims(campaign_dir: Path) -> dict[str, Claim]:
    """The claims of a campaign, none without a file. Raises `BadFile`."""
    path = campaign_dir / "claims.yaml"
    return read_yaml(path, ClaimsFile).root if path.exists() and load_yaml(path) is not None else {}


def corrections(campaign_dir: Path) -> dict[str, Correction]:
    """The corrections of a campaign, none without a file. Raises `BadFile`."""
    path = campaign_dir / "corrections.yaml"
    return read_yaml(path, CorrectionsFile).root if path.exists() and load_yaml(path) is not None else {}


def claims_table(campaign_dir: Path, facts: Mapping[str, Fact], *, site: bool = True) -> str:
    """Claims by state as a pipe table; empty text without claims. Raises `BadFile` with line and claim."""
    found = claims(campaign_dir)
    if not found:
        return ""
    path = campaign_dir / "claims.yaml"
    ledger = Ledger(campaign_dir)
    lines = ["| claim | state | evidence |", "| :-- | :-- | :-- |"]
    for name, claim in sorted(found.items(), key=lambda item: STATES.index(item[1].state)):
        text = _said(path, name, " ".join(part for part in (claim.says, claim.note) if part), facts, site)
        state = claim.state + (f", {claim.changed.isoformat()}" if claim.changed else "")
        lines.append(f"| {text} | {state} | {_evidence(path, name, claim.evidence, facts, ledger, site)} |")
    return "\n".join(lines)


def corrections_table(campaign_dir: Path, facts: Mapping[str, Fact], reader: Reader, *, site: bool = True) -> str:
    """All corrections by date: those of corrections.yaml, and those that published receipts carry."""
    path = campaign_dir / "corrections.yaml"
    ledger = Ledger(campaign_dir)
    rows = []
    for name, one in corrections(campaign_dir).items():
        cells = [_said(path, name, text, facts, site) if text else "" for text in (one.was, one.now, one.why)]
        rows.append((one.date.isoformat(), name, *cells, _evidence(path, name, one.evidence, facts, ledger, site)))
    for row in reader.rows("figure"):
        if row["corrected_on"] and row["old_value"]:
            now = _number(row) if row["value"] is not None else row["text"] or "withdrawn"
            name = str(row["name"]) + (f"[{row['part']}]" if row["part"] else "")
            link = receipt_link(reader.campaign, row["receipt"], site=site)
            rows.append(
                (
                    str(row["corrected_on"]),
                    name,
                    *(_quoted(text, row["origin"]) for text in (row["old_value"], now, row["note"])),
                    link,
                )
            )
    if not rows:
        return ""
    lines = ["| date | was | now | why | receipt |", "| :-- | :-- | :-- | :-- | :-- |"]
    lines += [f"| {date} | {was} | {now} | {why} | {link} |" for date, _, was, now, why, link in sorted(rows)]
    return "\n".join(lines)


def _number(row: dict[str, Any]) -> str:
    return with_unit(number_text(row["value"], exact_digits(row["value"])), row["unit"])


def _quoted(value: object, origin: str) -> str:
    """Words of a receipt, marked as such: their numbers have a source, and are no prose of ours."""
    text = escaped(" ".join(str(value or "").split()).replace("|", "¦"))
    return f'<span class="fact {origin}">{text}</span>' if text else ""


def _said(path: Path, name: str, text: str, facts: Mapping[str, Fact], site: bool) -> str:
    try:
        return " ".join(said(text, facts, site=site).split()).replace("|", "¦")
    except LabError as error:
        raise BadFile(path, str(error), line=_line(path, name), field=name) from error


def _evidence(path: Path, name: str, evidence: list[str], facts: Mapping[str, Fact], ledger: Ledger, site: bool) -> str:
    shown = []
    for item in evidence:
        if item in facts:
            shown.append(fact_link(facts[item], site=site))
            continue
        try:
            proof = ledger.proof(item)
        except NotFound as error:
            why = f"evidence {item!r} is neither a fact nor a receipt of this campaign"
            raise BadFile(path, why, line=_line(path, name), field=name) from error
        shown.append(receipt_link(ledger.campaign_dir.name, item, proof=proof, site=site))
    return ", ".join(shown)


def _line(path: Path, name: str) -> int | None:
    node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    if isinstance(node, yaml.MappingNode):
        return next((int(key.start_mark.line) + 1 for key, _ in node.value if key.value == name), None)
    return None
