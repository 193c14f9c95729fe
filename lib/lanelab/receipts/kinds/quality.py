"""Rows of the quality gate: teacher-forced comparison, greedy comparison, and task suites."""

from __future__ import annotations

from lanelab.receipts.kinds import Row, measured_in, register


class Quality(Row):
    """Two servers given the same text, position by position.

    A flip is a position where the two prefer different tokens. A comparison means nothing without its floor:
    the same server against its own reboot.
    """

    comparison: str
    reference: str
    candidate: str
    floor: bool = False  # the reference against its own reboot
    positions: int | None = measured_in("positions", None)
    flips: int | None = measured_in("positions", None)
    flip_share: float | None = measured_in("1", None, says="flips / positions")
    ppl_reference: float | None = measured_in("1", None, says="perplexity")
    ppl_candidate: float | None = measured_in("1", None, says="perplexity")
    dlogprob_mean: float | None = measured_in("logprob", None, says="mean absolute difference")
    dlogprob_p50: float | None = measured_in("logprob", None)
    dlogprob_p99: float | None = measured_in("logprob", None)
    dlogprob_max: float | None = measured_in("logprob", None)


class Greedy(Row):
    """One prompt answered greedily by two servers: the index of the first different token, null if there is none."""

    comparison: str
    floor: bool = False
    prompt: str
    first_divergence: int | None = measured_in("tokens", None)
    identical: bool


class Suite(Row):
    """One task suite on one server."""

    suite: str
    split: str
    part: str = "all"
    weights: str | None = None
    placement: str | None = None
    n: int = measured_in("tasks")
    ok: int = measured_in("tasks")
    errors: int | None = measured_in("requests", None)
    flooded: int | None = measured_in("tasks", None, says="tasks that ended in a loop of repeated calls")
    calls: int | None = measured_in("calls", None)
    multi_call: int | None = measured_in("tasks", None)
    tokens: int | None = measured_in("tokens", None)
    wall_s: float | None = measured_in("s", None)


register("quality", 1, Quality, "teacher-forced comparison of two servers")
register("greedy", 1, Greedy, "greedy answers of two servers, to their first difference")
register("suite", 1, Suite, "task suites: solved, failed, flooded")
