"""What a plan notices, each with what to do about it. One small function a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lanelab.checkpoint.facts import Facts
from lanelab.memory import host
from lanelab.memory.units import GIB

if TYPE_CHECKING:
    from lanelab.memory.plan import Plan

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """A rule's complaint: what is wrong and what would cure it."""

    rule: str
    severity: Severity
    message: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """Fields by name."""
        return {"rule": self.rule, "severity": self.severity, "message": self.message, "fix": self.fix}


def findings_of(plan: Plan, original: Facts) -> tuple[Finding, ...]:
    """All findings of a plan, errors first. `original` is the model before what-ifs."""
    found = [finding for rule in RULES for finding in rule(plan, original)]
    order = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.severity]))


def local_memory_short(plan: Plan, original: Facts) -> Iterator[Finding]:
    """Non-expert weights, hot cells and the KV cache that was asked for pass the budget."""
    if plan.short_gib > 1e-9:
        yield Finding(
            "memory-short", "error",
            f"{plan.short_gib:.2f} GiB too little: {plan.options.streams} × {plan.context} tokens need "
            f"{plan.kv_needed_gib:.2f} GiB of KV cache and {max(0.0, plan.kv_gib):.2f} GiB are left",
            "lower --hot-gib, --context or --streams" if plan.hot else "use a shorter context, fewer streams or a bigger machine",
        )  # fmt: skip


def context_beyond_model(plan: Plan, original: Facts) -> Iterator[Finding]:
    """More context than the model has positions."""
    limit = plan.facts.shape.max_context
    if plan.context > limit:
        yield Finding(
            "context-too-long", "error", f"context {plan.context} is over the model's {limit}", f"--context {limit}"
        )


def host_memory_short(plan: Plan, original: Facts) -> Iterator[Finding]:
    """Pinned cells, what the host uses anyway and the loader's transient pass host memory."""
    limit = plan.machine.host_gib.value
    if plan.host_peak_gib > limit:
        yield Finding(
            "host-memory-short", "error",
            f"host peak {plan.host_peak_gib:.1f} GiB is over the machine's {limit:g} GiB",
            "keep more cells in HBM, or use a machine with more host memory",
        )  # fmt: skip


def power_of_two_pinning(plan: Plan, original: Facts) -> Iterator[Finding]:
    """torch's pin_memory rounds blocks up; exact pinning does not."""
    if plan.local == "host" or not plan.cold:
        return
    rounded = host.pinned_power_of_two(plan.facts, plan.hot) / GIB
    other = plan.host_peak_gib - plan.host_pinned_gib
    if rounded + other > plan.machine.host_gib.value:
        yield Finding(
            "power-of-two-pinning", "warning",
            f"pinned by torch's pin_memory() the cold cells take {rounded:.1f} GiB instead of {plan.host_pinned_gib:.1f}, "
            f"which passes {plan.machine.host_gib.value:g} GiB",
            "pin exactly (VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY=1, or register the pages as they are)",
        )  # fmt: skip


def scales_in_local_memory(plan: Plan, original: Facts) -> Iterator[Finding]:
    """The scales of cold cells take HBM too; counting them with their cells gives another split."""
    facts = plan.facts
    if plan.scales_gib and plan.cold:
        stranded = plan.cold * facts.cell_scale_bytes / GIB
        yield Finding(
            "scales-in-hbm", "note",
            f"{plan.scales_gib:.2f} GiB of scales stay in HBM, {stranded:.2f} GiB of them for cold cells: offload by "
            f"parameter name moves weights only",
            "--scales cells shows the plan with scales moved along",
        )  # fmt: skip


def kv_strands_memory(plan: Plan, original: Facts) -> Iterator[Finding]:
    """Far more KV cache than was asked for while cells are cold."""
    spare = plan.kv_gib - plan.kv_needed_gib
    cell = plan.facts.cell_weight_bytes / GIB
    if plan.cold and cell and spare > max(1.0, 0.1 * plan.budget_gib):
        more = min(plan.cold, int(spare / cell))
        yield Finding(
            "kv-strands-memory", "note",
            f"{spare:.1f} GiB of KV cache beyond the {plan.options.streams} × {plan.context} tokens asked for would hold "
            f"{more} more hot cells",
            f"--hot-gib {(plan.hot + more) * cell:.1f}, or a longer --context if that is what the cache is for",
        )  # fmt: skip


def bandwidth_unknown(plan: Plan, original: Facts) -> Iterator[Finding]:
    """A term of the ceiling has no bandwidth."""
    unknown = sorted({term.memory for term in plan.ceiling.terms if term.ms is None})
    if unknown:
        yield Finding(
            "bandwidth-unknown", "warning",
            f"no ceiling: machine {plan.machine.name!r} gives no bandwidth for {', '.join(unknown)}",
            "`lanelab machine measure`, or write the figure and its source into the machine's file",
        )  # fmt: skip


def emulated_memory(plan: Plan, original: Facts) -> Iterator[Finding]:
    """Nothing that was planned on emulated tiers is a statement about hardware."""
    if plan.machine.emulated:
        yield Finding("emulated", "note", f"emulated: {plan.machine.emulated}", "")


def utilisation_over_one_memory(plan: Plan, original: Facts) -> Iterator[Finding]:
    """A machine without HBM has one memory for all."""
    if plan.local == "host":
        yield Finding(
            "one-memory", "note",
            f"machine {plan.machine.name!r} has no HBM: all weights and the KV cache share {plan.machine.host_gib.value:g} GiB "
            "of host memory, and no cell is cold",
            "--hbm-gib X plans with an emulated tier",
        )  # fmt: skip


def what_if(plan: Plan, original: Facts) -> Iterator[Finding]:
    """What each --set saves."""
    from lanelab.memory.plan import saved_by

    gib_s = plan.machine.hbm_gib_s if plan.local == "hbm" else None
    for role, name in plan.options.dtypes:
        gib, ms = saved_by(original, role, name, gib_s)
        time = f" and {ms:.2f} ms a step" if ms is not None else ""
        verb = "saves" if gib >= 0 else "costs"
        yield Finding(
            "what-if", "note", f"{role} as {name} {verb} {abs(gib):.2f} GiB{time}",
            "quality is not part of this arithmetic: measure it",
        )  # fmt: skip


def sources_disagree(plan: Plan, original: Facts) -> Iterator[Finding]:
    """All values of a quantity on which the model's sources differ."""
    for item in plan.facts.disagreements:
        values = "; ".join(f"{quoted.value:g} {item.unit} ({quoted.says}, {quoted.source})" for quoted in item.values)
        yield Finding("sources-disagree", "note", f"{item.what}: {values}", item.says or "")


def model_warnings(plan: Plan, original: Facts) -> Iterator[Finding]:
    """What reading the checkpoint left open."""
    for text in plan.facts.warnings:
        yield Finding("model", "warning", text, "")


Rule = Callable[["Plan", Facts], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    local_memory_short, context_beyond_model, host_memory_short, power_of_two_pinning, scales_in_local_memory,
    kv_strands_memory, bandwidth_unknown, emulated_memory, utilisation_over_one_memory, what_if, model_warnings,
    sources_disagree,
)  # fmt: skip
