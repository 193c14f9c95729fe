"""Which receipts count: the rule behind the views `<kind>`.

A receipt counts when it belongs to the latest good run of its campaign and step, or to the current
run, or to no run, and when nothing that itself counts for something supersedes or retracts it. A
supersession that a failed run left, or that was taken back, has no force; so has a retraction that
was retracted. Everything else stays in the views `<kind>_all`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanelab.errors import BadFile
from lanelab.receipts import reuse


@dataclass(frozen=True)
class Run:
    """One run as its `run.json` tells it; `receipts` are those that it made or used again."""

    step: str
    id: str
    status: str
    started: str
    receipts: frozenset[str]


@dataclass
class Runs:
    """The runs of one campaign folder, by id."""

    by_id: dict[str, Run] = field(default_factory=dict)

    def good(self, run: str | None) -> bool:
        """Whether a receipt of that run may supersede others: it has no run, or its run ended well."""
        return run is None or (run in self.by_id and self.by_id[run].status == "ok")


def read_runs(campaign_dir: Path) -> Runs:
    """Every `runs/<step>/<run id>/run.json`. Raises `BadFile`."""
    found = Runs()
    for path in sorted((campaign_dir / "runs").glob("*/*/run.json")):
        value = _run_json(path)
        listed = value.get("receipts")
        receipts = frozenset(_ids(listed if isinstance(listed, list) else [])) | set(reuse.noted(path.parent))
        found.by_id[path.parent.name] = Run(
            path.parent.parent.name,
            path.parent.name,
            str(value.get("status")),
            str(value.get("started") or ""),
            receipts,
        )
    return found


def _run_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"is not a run's record: {error}") from error
    if not isinstance(value, dict):
        raise BadFile(path, f"is not a run's record: it must be an object, not {type(value).__name__}")
    return value


def _ids(listed: list[Any]) -> Iterable[str]:
    for item in listed:
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict) and isinstance(item.get("id"), str):
            yield item["id"]


@dataclass(frozen=True)
class Claim:
    """What the rule needs to know of one receipt."""

    id: str
    kind: str
    step: str | None
    run: str | None
    supersedes: str | None = None
    retracts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Standing:
    """Whether a receipt counts, and if not by whose doing."""

    counts: bool
    superseded_by: str | None = None
    retracted_by: str | None = None


def standings(claims: Iterable[Claim], runs: Runs, current_run: str | None = None) -> dict[str, Standing]:
    """The standing of each receipt of one campaign, by id."""
    given = list(claims)
    retracted_by = _retractions(given)
    superseded_by = {
        claim.supersedes: claim.id
        for claim in given
        if claim.supersedes
        and claim.supersedes != claim.id
        and claim.id not in retracted_by
        and (runs.good(claim.run) or claim.run == current_run)
    }
    chosen = _chosen_runs(given, runs, current_run)
    if current_run in runs.by_id:
        chosen |= runs.by_id[current_run].receipts
    found = {}
    for claim in given:
        of_run = claim.run is None or claim.run == current_run or claim.id in chosen
        counts = of_run and claim.id not in superseded_by and claim.id not in retracted_by
        found[claim.id] = Standing(counts, superseded_by.get(claim.id), retracted_by.get(claim.id))
    return found


def _retractions(claims: list[Claim]) -> dict[str, str]:
    """Receipt to the retraction in force. A later retraction (ids sort by time) may take back an earlier one."""
    found: dict[str, str] = {}
    for claim in sorted(claims, key=lambda claim: claim.id, reverse=True):
        if claim.id not in found:
            for target in claim.retracts:
                if target != claim.id:
                    found[target] = claim.id
    return found


def _chosen_runs(claims: list[Claim], runs: Runs, current_run: str | None) -> set[str]:
    """Ids of the receipts of the latest good run of each step; the current run takes its step's place.

    A run without receipts (a new rendering of old ones) is passed over.
    """
    present = {claim.id for claim in claims}
    made: dict[str, set[str]] = defaultdict(set)
    step_of: dict[str, str | None] = {}
    for claim in claims:
        if claim.run is not None:
            made[claim.run].add(claim.id)
            step_of[claim.run] = claim.step
    latest: dict[str | None, tuple[str, str, set[str]]] = {}
    for run in runs.by_id.values():
        receipts = made[run.id] | (run.receipts & present)
        if run.id == current_run or run.status != "ok" or not receipts:
            continue
        step = step_of.get(run.id, run.step)
        if step not in latest or (run.started, run.id) > latest[step][:2]:
            latest[step] = (run.started, run.id, receipts)
    if current_run is not None and (made.get(current_run) or _reused(runs, current_run)):
        own = runs.by_id.get(current_run)
        latest.pop(step_of.get(current_run, own.step if own else None), None)
    return {receipt for _, _, receipts in latest.values() for receipt in receipts}


def _reused(runs: Runs, run: str) -> frozenset[str]:
    return runs.by_id[run].receipts if run in runs.by_id else frozenset()
