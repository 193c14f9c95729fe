"""`decode`: time to first token and decode speed by prompt size.

Repeats are the outer loop, sizes the inner one, so that a drift of the machine does not look like
an effect of the size. Every request has a prompt of its own that no cache has seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from lanelab.lane.timeline import StreamResult
from lanelab.measure.bench import Bench, Load, TooLong
from lanelab.measure.workload import Group, Parameters, Row, Workload


class DecodeParameters(Parameters):
    """Sizes in tokens by name; `streams` in flight together; `new_tokens` forced for each."""

    sizes: dict[str, PositiveInt] = Field(min_length=1)
    streams: list[PositiveInt] = Field(min_length=1)
    repeats: PositiveInt
    new_tokens: int = Field(ge=2)
    endpoint: Literal["completions", "chat"] = "completions"
    timeout_s: PositiveFloat = 600.0


PRESETS = {
    "quick": {"sizes": {"256": 256, "1K": 1024, "2K": 2048}, "streams": [1], "repeats": 3, "new_tokens": 32},
    # what a lane of 8,192 tokens holds
    "full": {
        "sizes": {"256": 256, "1K": 1024, "2K": 2048, "4K": 4096, "7K": 7168},
        "streams": [1, 4],
        "repeats": 3,
        "new_tokens": 128,
    },
    # the sizes of the published MiMo-V2.6-Pro campaign, so that curves can be laid over it
    "published": {
        "sizes": {"3K": 2952, "11.5K": 11520, "46K": 45826, "100K": 100000},
        "streams": [1, 4],
        "repeats": 3,
        "new_tokens": 128,
    },
}


def groups(parameters: DecodeParameters) -> list[Row]:
    """The identities of all groups, in the order in which they are measured."""
    return [
        {"size": size, "streams": streams, "repeat": repeat}
        for repeat in range(parameters.repeats)
        for streams in parameters.streams
        for size in parameters.sizes
    ]


async def measure(bench: Bench, parameters: DecodeParameters, done: Callable[[Row], bool]) -> AsyncIterator[Group]:
    """The groups that are not done. Sizes beyond the server's limit are left out and named in the evidence."""
    room = bench.room(parameters.new_tokens)
    fits = {size for size, tokens in parameters.sizes.items() if room is None or tokens <= room}
    if not fits:
        raise TooLong(
            f"no size of {sorted(parameters.sizes)} fits lane {bench.endpoint.lane_name!r}: its longest prompt with "
            f"{parameters.new_tokens} new tokens is {room} tokens",
            lane=bench.endpoint.lane_name,
            max_model_len=bench.endpoint.server.get("max_model_len"),
        )
    for group in groups(parameters):
        if done(group):
            continue
        if group["size"] not in fits:
            yield Group([], {**group, "skipped": f"longer than the server's limit of {room} prompt tokens"})
            continue
        prompts = [await bench.maker.make(parameters.sizes[group["size"]]) for _ in range(group["streams"])]
        load = await bench.load(prompts, parameters.new_tokens)
        rows = [row for stream in range(group["streams"]) for row in rows_of(group, stream, load)]
        yield Group(rows, {**group, **load.evidence, "prompt_length_by": sorted({prompt.by for prompt in prompts})})


def rows_of(group: Row, stream: int, load: Load) -> list[Row]:
    """One row an attempt of one stream; only the last one has figures."""
    result = load.results[stream]
    base = {**group, "stream": stream, "row_state": load.verdict.state}
    refused = [
        {**base, "attempt": number, "status": "failed",
         "error_kind": attempt.get("error_kind") or f"http_{attempt['http_status']}"}
        for number, attempt in enumerate(result.attempts[:-1], start=1)
    ]  # fmt: skip
    return [
        *refused,
        {**base, "attempt": len(result.attempts), "dispatch_late_s": load.late_s[stream], **_figures(result)},
    ]


def _figures(result: StreamResult) -> Row:
    return {
        "status": result.status,
        "error_kind": result.error_kind,
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.tokens,
        "tokens_by": result.tokens_by,
        "ttft_s": result.ttft_s,
        "first_answer_s": result.first_answer_s,
        "last_token_s": result.last_token_s,
        "decode_tok_s": result.decode_tok_s,
        "prefill_tok_s": result.prefill_tok_s,
        "tpot_s": result.tpot_s,
        "max_gap_s": result.max_gap_s,
        "flags": result.flags,
    }


WORKLOAD = Workload(
    name="decode",
    version=1,
    kind="decode",
    says="time to first token and decode speed by prompt size",
    model=DecodeParameters,
    presets=PRESETS,
    identity=("size", "streams", "repeat"),
    groups=groups,
    measure=measure,
)
