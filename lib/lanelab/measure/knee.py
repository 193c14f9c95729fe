"""`knee`: aggregate and per-stream speed by concurrency.

At each level all streams are sent at one moment and generate the same number of tokens. The
aggregate is all tokens over the time from the first dispatch to the last token, so it holds prefill
and the slowest stream; the rule that finds the knee is `stats.knee`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from lanelab import stats
from lanelab.measure.bench import Bench, Load, TooLong
from lanelab.measure.workload import Group, Parameters, Row, Workload


class KneeParameters(Parameters):
    """Levels of concurrency; prompt and new tokens of each stream."""

    streams: list[PositiveInt] = Field(min_length=1)
    repeats: PositiveInt
    prompt_tokens: PositiveInt
    new_tokens: int = Field(ge=2)
    endpoint: Literal["completions", "chat"] = "completions"
    timeout_s: PositiveFloat = 600.0


PRESETS = {
    "quick": {"streams": [1, 2, 4, 8], "repeats": 2, "prompt_tokens": 64, "new_tokens": 48},
    "full": {"streams": [1, 2, 4, 8, 12, 16], "repeats": 3, "prompt_tokens": 256, "new_tokens": 192},
    # levels, repeats and new tokens of the published MiMo-V2.6-Pro campaign
    "published": {"streams": [1, 2, 4, 8, 12, 16], "repeats": 2, "prompt_tokens": 256, "new_tokens": 192},
}


def groups(parameters: KneeParameters) -> list[Row]:
    """The identities of all groups, in the order in which they are measured."""
    return [
        {"streams": streams, "repeat": repeat}
        for repeat in range(parameters.repeats)
        for streams in parameters.streams
    ]  # fmt: skip


async def measure(bench: Bench, parameters: KneeParameters, done: Callable[[Row], bool]) -> AsyncIterator[Group]:
    """The levels that are not done."""
    room = bench.room(parameters.new_tokens)
    if room is not None and parameters.prompt_tokens > room:
        raise TooLong(
            f"prompt_tokens {parameters.prompt_tokens} does not fit lane {bench.endpoint.lane_name!r}: its longest "
            f"prompt with {parameters.new_tokens} new tokens is {room} tokens",
            lane=bench.endpoint.lane_name,
            max_model_len=bench.endpoint.server.get("max_model_len"),
        )
    for group in groups(parameters):
        if done(group):
            continue
        prompts = [await bench.maker.make(parameters.prompt_tokens) for _ in range(group["streams"])]
        load = await bench.load(prompts, parameters.new_tokens)
        counted = sorted({result.tokens_by or "unknown" for result in load.results})
        late = max((late for late in load.late_s if late is not None), default=None)
        yield Group(
            [row_of(group, parameters.new_tokens, load)],
            {**group, **load.evidence, "tokens_by": counted, "dispatch_late_max_s": late},
        )


def row_of(group: Row, new_tokens: int, load: Load) -> Row:
    """One level, once. Tokens of failed requests do not count; speeds are null if none was answered."""
    good = [result for result in load.results if result.status == "ok"]
    tokens = sum(result.tokens or 0 for result in good)
    starts = [result.sent_at for result in load.results if result.sent_at is not None]
    ends = [result.sent_at + result.last_token_s for result in good if result.sent_at and result.last_token_s]
    wall_s = max(ends) - min(starts) if ends else None
    speeds = [result.decode_tok_s for result in good if result.decode_tok_s is not None]
    first = [result.ttft_s for result in good if result.ttft_s is not None]
    return {
        **group,
        "new_tokens": new_tokens,
        "completion_tokens": tokens if good else None,
        "ok": len(good),
        "failed": len(load.results) - len(good),
        "wall_s": wall_s,
        "aggregate_tok_s": tokens / wall_s if wall_s else None,
        "per_stream_tok_s": stats.median(speeds) if speeds else None,
        "ttft_p50_s": stats.median(first) if first else None,
        "ttft_max_s": max(first, default=None),
        "loop_lag_max_s": load.loop_lag_max_s,
        "client_cpu_s": load.client_cpu_s,
        "row_state": load.verdict.state,
    }


WORKLOAD = Workload(
    name="knee",
    version=1,
    kind="knee",
    says="aggregate and per-stream speed by concurrency",
    model=KneeParameters,
    presets=PRESETS,
    identity=("streams", "repeat"),
    groups=groups,
    measure=measure,
)
