"""A plan as a receipt: what was predicted is on record before it is measured.

The receipt has `origin: predicted`. Inside one run the same plan is written once; a plan outside a
run supersedes the one that was made for the same question before.
"""

from __future__ import annotations

import dataclasses
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lanelab import checkpoint, machine_here, memory, paths
from lanelab import machine as machines
from lanelab.memory import tables
from lanelab.receipts import Receipt, Source, Store, new_id
from lanelab.receipts.checkout import git_state
from lanelab.receipts.store import checked

WORKLOAD = "plan"
VERSION = 1  # raised when the arithmetic changes its meaning
STEP = "01-memory-arithmetic"
_UNITS = {
    "_gib": "GiB", "_mib": "MiB", "_tok_s": "tok/s", "_ms": "ms", "_tokens": "tokens", "_cells": "cells",
    "_bytes_per_token": "B", "_bytes_per_token_mean": "B", "_layers_equivalent": "layers",
}  # fmt: skip
_PLAIN_UNITS = {
    "cells": "cells", "context": "tokens", "context_max": "tokens", "streams": "streams", "coverage": "1",
    "kv_tokens_per_hot_gib": "tokens/GiB", "cold_read_gib_per_token": "GiB", "cold_read_gib_per_step": "GiB",
    "cells_read_per_step": "cells",
}  # fmt: skip


def unit_of(name: str) -> str | None:
    """The unit that a plan field's name tells."""
    if name in _PLAIN_UNITS:
        return _PLAIN_UNITS[name]
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), None)


def plan(model: str, machine_name: str, **options: Any) -> memory.Plan:
    """Plan a model by name or path on a machine by name; `options` are those of `memory.Options`.

    `hbm_gib` and `link_gib_s` add an emulated tier. Raises `NotFound`, `BadFile`, `UsageError`.
    """
    box = machines.load(machine_name)
    hbm_gib, link_gib_s = options.pop("hbm_gib", None), options.pop("link_gib_s", None)
    if hbm_gib is not None:
        box = box.with_emulated_hbm(hbm_gib, link_gib_s)
    return memory.plan(checkpoint.load(model), box, memory.Options(**options))


def rows(planned: memory.Plan) -> list[dict[str, Any]]:
    """The rows of a plan's receipt."""
    found: list[dict[str, Any]] = []
    for name, value in planned.fields().items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found.append({"group": "plan", "name": name, "value": float(value), "unit": unit_of(name)})
        elif isinstance(value, str):
            found.append({"group": "plan", "name": name, "text": value})
    found += [
        {"group": "memory", "name": part.part, "value": part.gib, "unit": "GiB", "of": part.memory}
        for part in tables.memory_parts(planned)
    ]
    found += [
        {
            "group": "ledger", "name": row.role, "value": row.gib, "unit": "GiB", "of": row.dtype,
            "text": "loaded" if row.loaded else "not loaded",
        }
        for row in tables.ledger_rows(planned)
    ]  # fmt: skip
    found += [
        {"group": "term", "name": term.name, "value": term.ms, "unit": "ms", "of": term.memory, "formula": term.formula}
        for term in planned.ceiling.terms
    ]
    for point in tables.sweep(planned):
        for name in ("hot_cells", "kv_tokens", "context_max", "ceiling_tok_s"):
            value = getattr(point, name)
            found.append(
                {
                    "group": "sweep", "name": name, "at": point.hot_gib, "unit": unit_of(name),
                    "value": None if value is None else float(value),
                }
            )  # fmt: skip
    found += [{"group": "assumed", "name": name, "text": text} for name, text in planned.assumed.items()]
    found += [
        {
            "group": "finding",
            "name": item.rule,
            "of": item.severity,
            "text": " → ".join(filter(None, (item.message, item.fix))),
        }
        for item in planned.findings
    ]
    return found


def record_plan(
    campaign_dir: Path,
    campaign: str,
    model: str,
    machine: str,
    *,
    step: str | None = None,
    run: str | None = None,
    **options: Any,
) -> Receipt:
    """Plan and keep it as a receipt of kind `plan` in the campaign.

    `options` are those of `memory.Options`; None is not given. `emulated_hbm_gib` and
    `emulated_link_gib_s` put an emulated tier into a machine without HBM, and are left out on a machine
    that has HBM, so that one notebook serves both. The machine `here` is measured if that was not done
    yet. `step` and `run` default to what the runner set (`LANELAB_STEP`, `LANELAB_RUN`). If the same
    plan stands already in the same run it is returned, and nothing is written.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if machine == machines.HERE and not machines.machine_path(machine).is_file():
        machine_here.write(machine_here.measure())
    tier = {name: options.pop(f"emulated_{name}", None) for name in ("hbm_gib", "link_gib_s")}
    if not machines.load(machine).has_hbm:
        options |= {name: value for name, value in tier.items() if value is not None}
    planned = plan(model, machine, **options)
    step = step or os.environ.get("LANELAB_STEP") or STEP
    run = run or os.environ.get("LANELAB_RUN") or None
    store = Store(campaign_dir)
    commit, dirty = git_state(paths.root())
    now = datetime.now(UTC)
    receipt = Receipt(
        id=new_id("plan", now), kind="plan", origin="predicted", campaign=campaign, model=planned.facts.name,
        machine=machine, step=step, run=run, started=now, finished=now, parameters=_asked(planned, options), rows=rows(planned),
        source=Source(
            workload=WORKLOAD, workload_version=VERSION, git_commit=commit, git_dirty=dirty,
            notebook=f"notebooks/{step}.ipynb" if run else None,
        ),
    )  # fmt: skip
    receipt.labels.emulated = planned.machine.emulated
    ready = checked(receipt)
    before = [item for item in _plans(store) if _asks_the_same(item, ready)]
    for old in before:
        if old.run == run and store.rows(old) == ready.rows:
            return old
    if run is None and (older := [item for item in before if item.run is None]):
        ready = ready.model_copy(update={"supersedes": older[-1].id})
    return store.write(ready)


def _asked(planned: memory.Plan, options: dict[str, Any]) -> dict[str, Any]:
    """Every option as it was taken, given or not, so that the same question looks the same."""
    taken = {**dataclasses.asdict(planned.options), **options, "context": planned.context}
    taken["dtypes"] = dict(planned.options.dtypes)
    return {name: value for name, value in taken.items() if value not in (None, {})}


def _plans(store: Store) -> list[Receipt]:
    return [store.read(path.stem) for path in store.paths() if path.parent.name == "plan"]


def _asks_the_same(one: Receipt, other: Receipt) -> bool:
    keys = ("campaign", "model", "machine", "step", "parameters")
    return all(getattr(one, key) == getattr(other, key) for key in keys)
