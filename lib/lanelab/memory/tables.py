"""Rows for tables and figures of a plan: the ledger, what stands where, and the trade of hot memory.

Figures read these from a receipt of kind `plan`; nothing is drawn here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanelab.checkpoint.facts import EXPERTS
from lanelab.memory import kv
from lanelab.memory.plan import Plan, plan
from lanelab.memory.units import GIB

SWEEP_POINTS = 25


@dataclass(frozen=True)
class LedgerRow:
    """One role of the checkpoint."""

    role: str
    dtype: str
    parameters: int | None
    gib: float
    loaded: bool
    read_each_step: bool


@dataclass(frozen=True)
class Part:
    """One stretch of a memory: `memory` is hbm or host, parts of one memory add up to its size."""

    memory: str
    part: str
    gib: float


@dataclass(frozen=True)
class SweepRow:
    """The same plan at another hot budget."""

    hot_gib: float
    hot_cells: int
    kv_tokens: int
    context_max: int
    ceiling_tok_s: float | None


def ledger_rows(planned: Plan) -> list[LedgerRow]:
    """Roles by size, largest first."""
    rows = [
        LedgerRow(item.role, item.dtype, item.parameters, item.bytes / GIB, item.loaded, item.read_each_step)
        for item in planned.facts.ledger
    ]
    return sorted(rows, key=lambda row: -row.gib)


def memory_parts(planned: Plan) -> list[Part]:
    """What stands where. In each memory the parts add up to all of it, or to more if it does not fit."""
    machine, local = planned.machine, planned.local
    size = machine.hbm_gib if local == "hbm" else machine.host_gib.value
    parts = [
        Part(local, "experts, hot" if planned.cold else "experts", planned.hot_gib),
        Part(local, "expert scales", planned.scales_gib),
        Part(local, "non-expert weights", planned.nonexpert_gib),
        Part(local, "reserve", planned.reserve_gib),
        Part(local, "KV cache", planned.kv_gib),
        Part(local, "left to others", size - planned.budget_gib),
    ]
    if local == "hbm":
        other = planned.host_peak_gib - planned.host_pinned_gib
        free = machine.host_gib.value - planned.host_peak_gib
        parts += [
            Part("host", "experts, cold", planned.host_pinned_gib),
            Part("host", "system, engine and loader", other),
            Part("host", "free", max(0.0, free)),
        ]
    return [part for part in parts if part.gib > 0]


def sweep(planned: Plan, points: int = SWEEP_POINTS) -> list[SweepRow]:
    """The plan at `points` hot budgets, from none to the largest that leaves room for the KV cache asked for.

    Routing is uniform here: a coverage that was measured belongs to one budget and one hot list. Empty where there is nothing to trade: one memory, or a model without experts.
    """
    facts = planned.facts
    if planned.local == "host" or not facts.cells:
        return []
    cache = kv.kv_cache(facts, planned.options.kv_dtype)
    room = planned.kv_gib + planned.hot_gib - planned.kv_needed_gib
    most = max(0.0, min(facts.entry(EXPERTS).weight_bytes / GIB, room))
    rows = []
    for point in range(points):
        hot_gib = most * point / (points - 1)
        other = plan(facts, planned.machine, replace(planned.options, hot_gib=hot_gib, coverage=None, dtypes=()))
        rows.append(
            SweepRow(
                hot_gib,
                other.hot,
                cache.pool_tokens(other.kv_gib * GIB, other.context),
                cache.context_max(other.kv_gib * GIB, other.options.streams, facts.shape.max_context),
                other.ceiling.tok_s,
            )
        )
    return rows
