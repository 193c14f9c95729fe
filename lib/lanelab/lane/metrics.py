"""A server's own counters, before and after, and what they prove about a measurement.

The Prometheus text is parsed with the official client's parser; samples of one name are summed over
their labels (engines, finish reasons). Servers name the same thing differently, so `NAMES` gives
each figure of ours the names that vLLM and SGLang use, newest first.

What the counters prove (`judge`):

- *contended*: others had requests in flight when ours began or after ours had ended, or the server
  finished more requests in between than we sent. Then the figures are not ours alone.
- *warm*: the prefix cache served at least `WARM_SHARE` of the prompt tokens that were looked up.
- *cold*: it was asked and served less than that; or the server has these counters and they stood
  still, so that nothing came from a cache.
- *unknown*: the counters are missing, went backwards (the server restarted), or miss requests of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from prometheus_client.parser import text_string_to_metric_families

from lanelab.errors import LabError

State = Literal["warm", "cold", "contended", "unknown"]
WARM_SHARE = 0.05

NAMES: dict[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "finished": ("vllm:request_success_total", "sglang:num_requests_total"),
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "generation_tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "prefix_queries": (
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
        "sglang:prompt_tokens_total",
    ),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"),
    "preemptions": ("vllm:num_preemptions_total",),
    "spec_drafts": ("vllm:spec_decode_num_drafts_total",),
    "spec_draft_tokens": ("vllm:spec_decode_num_draft_tokens_total",),
    "spec_accepted_tokens": ("vllm:spec_decode_num_accepted_tokens_total",),
}
GAUGES = frozenset({"running", "waiting"})


class BadMetrics(LabError):
    """What a server sent as metrics is not Prometheus text."""


def parse(text: str) -> dict[str, float]:
    """Sample name to value, summed over labels. Raises `BadMetrics`."""
    totals: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                totals[sample.name] = totals.get(sample.name, 0.0) + float(sample.value)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise BadMetrics(f"not Prometheus text: {error}") from error
    return totals


def figures(totals: dict[str, float]) -> dict[str, float]:
    """Our names to values, for those of `NAMES` that the server has."""
    found = {}
    for ours, theirs in NAMES.items():
        for name in theirs:
            if name in totals:
                found[ours] = totals[name]
                break
    return found


@dataclass(frozen=True)
class Window:
    """The figures before and after a piece of work; None where the server has none."""

    before: dict[str, float] | None
    after: dict[str, float] | None

    def delta(self, name: str) -> float | None:
        """How far a counter went; None where it is missing on either side."""
        if not self.before or not self.after or name not in self.before or name not in self.after:
            return None
        return self.after[name] - self.before[name]

    def acceptance(self) -> dict[str, float] | None:
        """Speculation: `length` = 1 + accepted/drafts, `rate` = accepted/draft tokens; None without it."""
        drafts, tokens, accepted = (
            self.delta(name) for name in ("spec_drafts", "spec_draft_tokens", "spec_accepted_tokens")
        )
        if not drafts or not tokens or accepted is None:
            return None
        return {"length": 1.0 + accepted / drafts, "rate": accepted / tokens}


@dataclass(frozen=True)
class Verdict:
    """A state and the counters that prove it."""

    state: State
    evidence: dict[str, Any] = field(default_factory=dict)


def judge(window: Window, *, sent: int, answered: int, cached_share: float | None = None) -> Verdict:
    """The state of a measurement that sent so many requests, of which so many were answered. See the module.

    `cached_share` is the share of prompt tokens that the answers' own usage calls cached; it stands in
    where the server counts no prefix cache.
    """
    if not window.before or not window.after:
        return Verdict("unknown", {"why": "the server's metrics could not be read"})
    evidence: dict[str, Any] = {"requests_sent": sent, "requests_answered": answered}
    for name in ("finished", "prefix_queries", "prefix_hits", "prompt_tokens", "generation_tokens", "preemptions"):
        if (went := window.delta(name)) is not None:
            evidence[f"{name}_delta"] = went
            if went < 0:
                return Verdict("unknown", evidence | {"why": f"counter {name} went backwards: the server restarted"})
    for name in sorted(GAUGES):
        for side, values in (("before", window.before), ("after", window.after)):
            if name in values:
                evidence[f"{name}_{side}"] = values[name]
    others = [name for name in evidence if name.startswith(("running_", "waiting_")) and evidence[name] > 0]
    if others:
        return Verdict("contended", evidence | {"why": f"requests of others in flight: {', '.join(others)}"})
    if (finished := evidence.get("finished_delta")) is not None and finished > sent:
        return Verdict("contended", evidence | {"why": f"the server finished {finished:g} requests, we sent {sent}"})
    if finished is not None and finished < answered:
        return Verdict(
            "unknown", evidence | {"why": f"the server finished {finished:g} requests, we had {answered} answers"}
        )
    if finished is None and not {"running_before", "running_after"} <= set(evidence):
        return Verdict("unknown", evidence | {"why": "neither finished nor running requests are counted"})
    hits, queries = evidence.get("prefix_hits_delta"), evidence.get("prefix_queries_delta")
    if hits is not None and queries is not None:
        evidence["prefix_hit_share"] = share = hits / queries if queries else 0.0
    elif cached_share is not None:
        evidence["usage_cached_share"] = share = cached_share
    else:
        return Verdict("unknown", evidence | {"why": "the prefix cache is not counted"})
    return Verdict("warm" if share >= WARM_SHARE else "cold", evidence)


def read(get: Callable[[], str]) -> dict[str, float] | None:
    """The figures of a metrics page that `get` fetches; None if it is missing or not understood."""
    try:
        return figures(parse(get())) or None
    except LabError:
        return None
