"""The plan: what of a model fits where on a machine, and how fast decoding could be at most.

    budget   = HBM × utilisation
    fixed    = non-expert weights + scales of all cells + reserve (graphs, activations, workspace)
    hot      = floor(hot budget / weights of a cell) cells in HBM; without a hot budget, all that fits
    KV       = budget − fixed − hot
    cold     = the other cells, in host memory

The scales stay in HBM because an engine's offload by parameter name moves weights only; the
published boots fit no other way. A machine without HBM has one memory, the host's, which then holds
everything. Nothing is read or written here; every number is predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from lanelab.checkpoint.facts import EXPERTS, Facts
from lanelab.errors import UsageError
from lanelab.machine import Machine
from lanelab.memory import ceiling as speed
from lanelab.memory import experts, host, kv
from lanelab.memory.findings import Finding, findings_of
from lanelab.memory.units import GIB

Verdict = Literal["fits", "fits_with_offload", "does_not_fit"]
DEFAULT_CONTEXT = 32_768
UTILISATION = 0.95
RESERVE_GIB = 2.0  # where a machine gives none
HOST_USED_GIB = 2.0


@dataclass(frozen=True)
class Options:
    """What may be asked of a plan; None means the default that `Plan.assumed` names."""

    hot_gib: float | None = None  # weights without scales
    context: int | None = None  # tokens a request
    streams: int = 1
    utilisation: float = UTILISATION
    reserve_gib: float | None = None
    coverage: float | None = None  # share of picks that hit hot cells; None: uniform routing
    depth: int = 0  # tokens already in the cache when the ceiling is taken
    dtypes: tuple[tuple[str, str], ...] = ()  # (role, dtype) what-ifs
    kv_dtype: str | None = None
    scales: Literal["hbm", "cells"] = "hbm"  # where a cold cell's scales are

    def checked(self) -> Options:
        """The options, or `UsageError` naming the one that cannot be."""
        rules = (
            ("--hot-gib", self.hot_gib, self.hot_gib is None or self.hot_gib >= 0, "at least 0"),
            ("--context", self.context, self.context is None or self.context >= 1, "at least 1 token"),
            ("--streams", self.streams, self.streams >= 1, "at least 1"),
            ("--utilisation", self.utilisation, 0 < self.utilisation <= 1, "over 0 and at most 1"),
            ("--reserve-gib", self.reserve_gib, self.reserve_gib is None or self.reserve_gib >= 0, "at least 0"),
            ("--coverage", self.coverage, self.coverage is None or 0 <= self.coverage <= 1, "between 0 and 1"),
            ("--depth", self.depth, self.depth >= 0, "at least 0 tokens"),
        )
        for name, value, good, valid in rules:
            if not good or (value is not None and not math.isfinite(value)):
                raise UsageError(f"{name} {value!r} can't be (valid: {valid})", option=name, value=value)
        return self


@dataclass(frozen=True)
class Plan:
    """The arithmetic of one model on one machine. Sizes are GiB; `fields` has them by name."""

    facts: Facts
    machine: Machine
    options: Options
    context: int
    local: Literal["hbm", "host"]
    budget_gib: float
    reserve_gib: float
    nonexpert_gib: float
    scales_gib: float  # scales in the local memory that do not move with a cell
    hot: int
    hot_gib: float  # bytes of hot cells in local memory, with the scales that move with them
    kv_gib: float
    kv_needed_gib: float
    short_gib: float  # what is missing in local memory; 0 if it fits
    host_pinned_gib: float
    host_peak_gib: float
    verdict: Verdict
    ceiling: speed.Ceiling
    ceiling_all_hot: speed.Ceiling
    coverage: float
    cells_read: float
    assumed: dict[str, str]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def cold(self) -> int:
        """Cells in host memory."""
        return self.facts.cells - self.hot

    def fields(self) -> dict[str, object]:
        """Every number by its name; site/docs/formats.md defines each."""
        facts, cache = self.facts, kv.kv_cache(self.facts, self.options.kv_dtype)
        pool = self.kv_gib * GIB
        whole_cell = facts.cell_weight_bytes + facts.cell_scale_bytes
        per_request = cache.request_bytes(self.context)
        return {
            "model": facts.name,
            "machine": self.machine.name,
            "origin": "predicted",
            "emulated": self.machine.emulated,
            "verdict": self.verdict,
            "local_memory": self.local,
            "experts_gib": facts.cells * whole_cell / GIB,
            "expert_weights_gib": facts.cells * facts.cell_weight_bytes / GIB,
            "nonexpert_gib": self.nonexpert_gib,
            "cells": facts.cells,
            "cell_mib": whole_cell / 2**20,
            "cell_weights_mib": facts.cell_weight_bytes / 2**20,
            "hbm_budget_gib": self.budget_gib if self.local == "hbm" else None,
            "local_budget_gib": self.budget_gib,
            "reserve_gib": self.reserve_gib,
            "scales_gib": self.scales_gib,
            "hot_gib": self.hot_gib,
            "hot_cells": self.hot,
            "hot_layers_equivalent": experts.layers_equivalent(facts, self.hot),
            "cold_cells": self.cold,
            "cold_gib": self.cold * whole_cell / GIB,
            "cold_layers_equivalent": experts.layers_equivalent(facts, self.cold),
            "coverage": self.coverage,
            "context": self.context,
            "streams": self.options.streams,
            "kv_gib": self.kv_gib,
            "kv_needed_gib": self.kv_needed_gib,
            "kv_bytes_per_token": cache.slope_bytes,
            "kv_bytes_per_token_mean": per_request / self.context,
            "kv_tokens": cache.pool_tokens(pool, self.context),
            "context_max": cache.context_max(pool, self.options.streams, facts.shape.max_context),
            "kv_tokens_per_hot_gib": GIB / per_request * self.context if per_request else None,
            "cells_read_per_step": self.cells_read,
            "cold_read_gib_per_token": self.ceiling.terms[0].gib / self.options.streams,
            "cold_read_gib_per_step": self.ceiling.terms[0].gib,
            "step_ms": self.ceiling.step_ms,
            "ceiling_tok_s": self.ceiling.tok_s,
            "ceiling_overlapped_tok_s": self.ceiling.overlapped_tok_s,
            "ceiling_all_hot_tok_s": self.ceiling_all_hot.tok_s,
            "host_gib": self.machine.host_gib.value,
            "host_pinned_gib": self.host_pinned_gib,
            "host_peak_gib": self.host_peak_gib,
            "short_gib": self.short_gib,
        }

    def as_json(self) -> dict[str, object]:
        """`fields`, the ceiling's terms, the what-ifs, assumptions and findings."""
        return {
            **self.fields(),
            "ceiling_terms": [
                {"name": t.name, "memory": t.memory, "gib": t.gib, "gib_s": t.gib_s, "ms": t.ms, "formula": t.formula}
                for t in self.ceiling.terms
            ],
            "ceiling_formula": "streams / sum of the terms; overlapped: streams / max(link, local)",
            "what_ifs": [{"role": role, "dtype": name} for role, name in self.options.dtypes],
            "assumed": self.assumed,
            "findings": [finding.as_json() for finding in self.findings],
        }


def plan(facts: Facts, machine: Machine, options: Options | None = None) -> Plan:
    """Plan a model on a machine. Raises `UsageError`, and what `Facts.set_dtype` raises."""
    asked = (options or Options()).checked()
    original = facts
    for role, name in asked.dtypes:
        facts = facts.set_dtype(role, name)
    assumed: dict[str, str] = {}
    limit = facts.shape.max_context
    context = asked.context or min(limit, DEFAULT_CONTEXT)
    if asked.context is None:
        assumed["context"] = f"{context} tokens"
    local: Literal["hbm", "host"] = "hbm" if machine.has_hbm else "host"
    reserve = _reserve(asked, machine, local, assumed)
    budget = (machine.hbm_gib if local == "hbm" else machine.host_gib.value) * asked.utilisation
    cache = kv.kv_cache(facts, asked.kv_dtype)
    needed = asked.streams * cache.request_bytes(context) / GIB
    scales_in_hbm = asked.scales == "hbm" and local == "hbm"
    scales = facts.cells * facts.cell_scale_bytes / GIB if scales_in_hbm else 0.0
    cell_gib = (facts.cell_weight_bytes + (0 if scales_in_hbm else facts.cell_scale_bytes)) / GIB
    nonexpert = facts.nonexpert_bytes / GIB
    room = budget - nonexpert - reserve - scales
    if local == "host":
        hot = facts.cells
        if asked.hot_gib is not None:
            assumed["hot_gib"] = "ignored: this machine has one memory, which holds every cell"
    elif asked.hot_gib is not None:
        hot = experts.hot_cells(facts, asked.hot_gib)
    else:
        hot = max(0, min(facts.cells, int((room - needed) / cell_gib + 1e-9))) if facts.cells else 0
        assumed["hot_gib"] = f"{hot * facts.cell_weight_bytes / GIB:.2f} GiB, all that fits beside the KV cache"
    hot_bytes = hot * cell_gib
    kv_gib = room - hot_bytes
    short = max(0.0, needed - kv_gib)
    coverage = _coverage(asked, facts, hot, assumed)
    pinned = 0.0 if local == "host" else host.cold_bytes(facts, hot, scales_in_hbm) / GIB
    peak = _host_peak(facts, machine, local, pinned, nonexpert + hot_bytes + reserve + needed)
    result = Plan(
        facts=facts, machine=machine, options=asked, context=context, local=local, budget_gib=budget,
        reserve_gib=reserve, nonexpert_gib=nonexpert, scales_gib=scales, hot=hot, hot_gib=hot_bytes,
        kv_gib=max(0.0, kv_gib), kv_needed_gib=needed, short_gib=short, host_pinned_gib=pinned, host_peak_gib=peak,
        verdict=_verdict(facts, hot, short, peak, machine, context),
        ceiling=_ceiling(facts, machine, local, asked, coverage, scales_in_hbm, cache),
        ceiling_all_hot=_ceiling(facts, machine, local, asked, 1.0, scales_in_hbm, cache),
        coverage=coverage, cells_read=_cells_read(facts, asked.streams), assumed=assumed,
    )  # fmt: skip
    return replace(result, findings=findings_of(result, original))


def _reserve(asked: Options, machine: Machine, local: str, assumed: dict[str, str]) -> float:
    if asked.reserve_gib is not None:
        return asked.reserve_gib
    if machine.reserve_gib and local == "hbm":
        return machine.reserve_gib.value
    default = min(RESERVE_GIB, 0.1 * (machine.hbm_gib if local == "hbm" else machine.host_gib.value))
    assumed["reserve_gib"] = f"{default:g} GiB: the machine's file gives none"
    return default


def _coverage(asked: Options, facts: Facts, hot: int, assumed: dict[str, str]) -> float:
    if not facts.cells:
        return 1.0
    if hot == facts.cells:
        return 1.0
    if asked.coverage is not None:
        return asked.coverage if hot else 0.0
    assumed["coverage"] = "hot cells / cells: routing taken as uniform"
    return hot / facts.cells


def _cells_read(facts: Facts, streams: int) -> float:
    shape = facts.shape
    return shape.moe_layers * experts.distinct_experts(shape.experts, shape.top_k, streams)


def _ceiling(
    facts: Facts, machine: Machine, local: str, asked: Options, coverage: float, scales_in_hbm: bool, cache: kv.KvCache
) -> speed.Ceiling:
    step = speed.Step(
        streams=asked.streams, cells=_cells_read(facts, asked.streams), coverage=coverage,
        cell_weight_bytes=facts.cell_weight_bytes, cell_scale_bytes=facts.cell_scale_bytes, scales_in_hbm=scales_in_hbm,
        nonexpert_bytes=facts.read_bytes, kv_bytes=asked.streams * cache.read_bytes(asked.depth),
    )  # fmt: skip
    host_gib_s = machine.host_gib_s.value if machine.host_gib_s else None
    link_gib_s = machine.link_gib_s.value if machine.link_gib_s else None
    local_gib_s = machine.hbm_gib_s if local == "hbm" else host_gib_s
    return speed.ceiling(step, local=local, local_gib_s=local_gib_s, link_gib_s=link_gib_s)


def _host_peak(facts: Facts, machine: Machine, local: str, pinned: float, all_gib: float) -> float:
    used = machine.host_used_gib.value if machine.host_used_gib else min(HOST_USED_GIB, 0.1 * machine.host_gib.value)
    if local == "host":
        return used + all_gib
    if machine.gpus and all(gpu.hbm_gib.origin == "emulated" for gpu in machine.gpus):
        return used + pinned + all_gib  # the emulated tier lies in the same memory
    return used + pinned + (host.transient_gib(facts) if pinned else 0.0)


def _verdict(facts: Facts, hot: int, short: float, peak: float, machine: Machine, context: int) -> Verdict:
    if short > 1e-9 or peak > machine.host_gib.value or context > facts.shape.max_context:
        return "does_not_fit"
    return "fits" if hot == facts.cells else "fits_with_offload"


def saved_by(facts: Facts, role: str, name: str, gib_s: float | None) -> tuple[float, float | None]:
    """GiB, and milliseconds a step, saved by storing a role otherwise (negative: it costs).

    Time counts only for roles that every step reads, at a bandwidth of `gib_s`.
    """
    before, after = facts.entry(role), facts.set_dtype(role, name).entry(role)
    gib = (before.bytes - after.bytes) / GIB
    if role == EXPERTS:
        gib_step = gib / facts.cells * facts.shape.picks_per_token
    else:
        gib_step = gib if before.read_each_step else 0.0
    return gib, gib_step / gib_s * 1e3 if gib_s else None
