"""Running a workload: lane, journal, rows, receipt.

Every row is on disk before the next one is measured. A run that was killed, or whose lane died, is
gone on with: groups whose rows are all there are kept, a torn or broken group is measured again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lanelab import campaign as campaigns
from lanelab import lane as lanes
from lanelab import paths
from lanelab.errors import LabError, NotFound
from lanelab.lane.stream import run_now
from lanelab.measure.bench import GONE, bench
from lanelab.measure.environment import client_facts
from lanelab.measure.workload import Group, Row, Workload
from lanelab.receipts import (
    Environment,
    Journal,
    Labels,
    Receipt,
    Source,
    Store,
    lane_label,
    measure_key,
    new_id,
    reuse,
    utc_text,
)
from lanelab.receipts.checkout import git_state
from lanelab.receipts.counting import replaced_by

EVIDENCE = "_evidence"  # beside a journaled row; not part of it
BUSY_CORES = 0.5  # of other processes: worth a word, since a lane on this machine is slower for it
Say = Callable[[str], None]


class LaneLost(LabError):
    """The lane went away while it was measured. Data: `lane`, `rows`, `journal`."""


class NothingMeasured(LabError):
    """No request was answered; the receipt says why. Data: `receipt`, `error_kinds`."""


def run(
    workload: str,
    *,
    campaign_dir: Path,
    campaign: str,
    lane: str,
    preset: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    resume: bool = True,
    step: str | None = None,
    run: str | None = None,
    run_dir: Path | None = None,
    say: Say | None = None,
) -> Receipt:
    """Measure a workload on a lane that is up; returns the written receipt.

    With `resume`, rows that an earlier, unfinished run of the same measure key journaled are kept, and
    inside a run (`run_dir`) a receipt that such a run had finished is used again.
    `say` gets a line a group (stderr by default). Raises `NotFound` (workload, preset, parameter,
    lane), `LaneDown`, `LaneLost` (rows are kept), `NothingMeasured` (a receipt is written), `NoSpace`.
    """
    from lanelab.measure import WORKLOADS

    if workload not in WORKLOADS:
        raise NotFound("workload", workload, WORKLOADS)
    chosen = WORKLOADS[workload]
    resolved = chosen.resolve(preset, parameters)
    endpoint = lanes.resolve(lane)
    plan = campaigns.planned(campaign)
    key = measure_key(
        workload=workload,
        version=chosen.version,
        parameters=resolved,
        model=plan.model if plan else None,
        machine=plan.machine if plan else None,
        recipe_digest=endpoint.recipe.digest if endpoint.recipe else None,
    )
    if resume and run_dir is not None:
        before = reuse.left_behind(campaign_dir, step=step, kind=chosen.kind, key=key, run_dir=run_dir)
        if before is not None:
            reuse.note(run_dir, before.id)
            (say or _stderr)(f"{workload}: receipt {before.id} of the unfinished run {before.run} is used again")
            return before
    with Journal(campaign_dir, key, resume=resume) as journal:
        journal.begin(
            {"workload": workload, "parameters": resolved, "lane": lane, "started": utc_text(datetime.now(UTC))}
        )
        work = _Work(chosen, resolved, endpoint, journal, say or _stderr)
        facts = {"client": client_facts(), "server": {**endpoint.server, "model": endpoint.model}}
        facts["server"] |= run_now(work.measure())
        receipt = _receipt(work, campaign, plan, lane, facts, step)
        receipt = receipt.model_copy(update={"run": run})
        receipt = receipt.model_copy(update={"supersedes": replaced_by(receipt, campaign_dir)})
        written = Store(campaign_dir).write(receipt)
        journal.close(done=True)
        place = f", in the place of {written.supersedes}" if written.supersedes else ""
        work.say(f"{workload}: {len(work.rows)} rows, {written.labels.state}, kept as receipt {written.id}{place}")
    if not any(row.get("status", "ok") == "ok" and row.get("ok", 1) for row in work.rows):
        kinds = Counter(str(row.get("error_kind") or "failed") for row in work.rows)
        raise NothingMeasured(
            f"no request of {workload} on lane {lane!r} was answered ({_counts(kinds)}); see receipt {written.id}",
            receipt=written.id,
            error_kinds=dict(kinds),
        )
    return written


class _Work:
    """One workload on one lane: what is kept, what is measured, and the evidence of both."""

    def __init__(
        self, workload: Workload, resolved: dict[str, Any], endpoint: lanes.Endpoint, journal: Journal, say: Say
    ) -> None:
        self.workload = workload
        self.parameters = workload.model.model_validate(resolved)
        self.resolved = resolved
        self.endpoint = endpoint
        self.journal = journal
        self.say = say
        self.rows, self.evidence = kept(workload, journal.rows)
        self.kept = len(self.rows)
        self.done = {workload.key_of(entry) for entry in self.evidence}

    async def measure(self) -> dict[str, Any]:
        """Measure what is missing; returns what was learnt about the server. Raises `LaneLost`."""
        total = len(self.workload.groups(self.parameters))
        if self.kept:
            self.say(f"{self.workload.name}: {len(self.done)} of {total} groups kept from an earlier run")
        async with bench(self.endpoint, api=self.resolved["endpoint"], timeout_s=self.resolved["timeout_s"]) as on:
            await on.prepare(_smallest(self.resolved))
            groups = self.workload.measure(on, self.parameters, lambda row: self.workload.key_of(row) in self.done)
            async with aclosing(groups):  # type: ignore[type-var]
                async for group in groups:
                    self._take(group)
                    self.say(f"{self.workload.name} {len(self.done)}/{total}: {_line(group)}")
                    if _broken_off(group.evidence) and not await on.alive():
                        raise LaneLost(
                            f"lane {self.endpoint.lane_name!r} went away in {_identity(self.workload, group)}; "
                            f"{len(self.rows)} rows are kept, and the same command with --resume goes on",
                            lane=self.endpoint.lane_name,
                            rows=len(self.rows),
                            journal=str(self.journal.path),
                        )
            return {
                "tokenize": on.tokenizes,
                "metrics": on.has_metrics,
                "fixed_length": on.fixed_length,
                "per_chunk_tokens": bool(on.extra),
            }

    def _take(self, group: Group) -> None:
        evidence = {**group.evidence, "rows": len(group.rows)}
        for number, row in enumerate(group.rows):
            self.journal.append({**row, EVIDENCE: evidence} if number == 0 else row)
        self.rows += group.rows
        self.evidence.append(evidence)
        self.done.add(self.workload.key_of(group.evidence))


def kept(workload: Workload, journaled: list[Row]) -> tuple[list[Row], list[Row]]:
    """Rows and evidence of the groups that need not be measured again.

    A group is whole when as many rows stand in the journal as its evidence says; one that the lane
    broke off is measured again.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in journaled:
        if EVIDENCE in row:  # a group that was measured again begins anew
            groups[workload.key_of(row)] = []
        groups.setdefault(workload.key_of(row), []).append(row)
    rows: list[Row] = []
    evidence: list[Row] = []
    for found in groups.values():
        said = found[0].get(EVIDENCE)
        if said is None or said["rows"] != len(found) or _broken_off(said):
            continue
        evidence.append(said)
        rows += [{name: value for name, value in row.items() if name != EVIDENCE} for row in found]
    return rows, evidence


def _receipt(
    work: _Work,
    campaign: str,
    plan: campaigns.Campaign | None,
    lane: str,
    facts: dict[str, dict[str, Any]],
    step: str | None,
) -> Receipt:
    notebook = f"notebooks/{step}.ipynb" if step and (paths.root() / "notebooks" / f"{step}.ipynb").is_file() else None
    now = datetime.now(UTC)
    begun = datetime.fromisoformat(work.journal.header["started"].replace("Z", "+00:00"))
    commit, dirty = git_state(paths.root())
    own = plan is not None and lane in {plan.lane, *(step.lane for step in plan.steps)}
    return Receipt(
        id=new_id(work.workload.kind, now),
        kind=work.workload.kind,
        origin="measured",
        campaign=campaign,
        machine=(plan.machine if plan else None) or "here",
        model=plan.model if plan and plan.model and own else work.endpoint.model,
        recipe=work.endpoint.recipe,
        lane=lane_label(work.endpoint.lane_name),
        step=step,
        started=begun,
        finished=now,
        parameters=work.resolved,
        labels=labels(work.evidence, work.endpoint.emulated, work.kept),
        environment=Environment(client=facts["client"], server=facts["server"]),
        source=Source(
            git_commit=commit,
            git_dirty=dirty,
            notebook=notebook,
            workload=work.workload.name,
            workload_version=work.workload.version,
        ),
        rows=work.rows,
    )


def labels(evidence: list[Row], emulated: str | None, rows_kept: int) -> Labels:
    """The receipt's state: that of all its groups if they agree, contended if any is, else unknown."""
    states = Counter(str(entry["state"]) for entry in evidence if "state" in entry)
    state: Any = "unknown"
    if states["contended"]:
        state = "contended"
    elif len(states) == 1:
        state = next(iter(states))
    said: dict[str, Any] = {"groups": evidence, "states": dict(states)}
    others = [entry["others_busy_cores"] for entry in evidence if entry.get("others_busy_cores") is not None]
    if others:
        said["others_busy_cores_max"] = max(others)
    if rows_kept:
        said["rows_from_an_earlier_run"] = rows_kept
    return Labels(state=state, evidence=said, emulated=emulated)


def _smallest(resolved: dict[str, Any]) -> int:
    sizes = resolved.get("sizes") or {"": resolved.get("prompt_tokens", 64)}
    return int(min(sizes.values()))


def _broken_off(evidence: Row) -> bool:
    return not GONE.isdisjoint(evidence.get("errors", {}))


def _identity(workload: Workload, group: Group) -> str:
    return ", ".join(f"{name} {group.evidence[name]}" for name in workload.identity)


def _line(group: Group) -> str:
    """One line on a group: what it was, its speeds, its state."""
    said = [f"{name} {group.evidence[name]}" for name in ("size", "streams", "repeat") if name in group.evidence]
    if "skipped" in group.evidence:
        return ", ".join([*said, f"skipped: {group.evidence['skipped']}"])
    last = group.rows[-1]
    for name, unit in (("ttft_s", "s to first token"), ("decode_tok_s", "tok/s"), ("aggregate_tok_s", "tok/s together"),
                       ("per_stream_tok_s", "tok/s each")):  # fmt: skip
        if last.get(name) is not None:
            said.append(f"{last[name]:.3g} {unit}")
    if (others := group.evidence.get("others_busy_cores", 0.0)) >= BUSY_CORES:
        said.append(f"others kept {others:.1f} cores busy")
    failed = Counter(str(row["error_kind"]) for row in group.rows if row.get("error_kind"))
    said += [f"failed: {_counts(failed)}"] if failed else []
    said += [f"{last['failed']} failed"] if last.get("failed") else []
    return ", ".join([*said, str(group.evidence.get("state"))])


def _counts(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))


def _stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
