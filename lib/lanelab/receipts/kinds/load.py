"""Rows of the two basic load measurements: decode at a prompt size, and the concurrency knee."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register

Status = Literal["ok", "failed", "truncated"]
State = Literal["warm", "cold", "contended", "unknown"]


class Decode(Row):
    """One attempt of one streamed request.

    TTFT ends at the first generated token on any channel. Decode speed is
    (N − n_first)/(t_last_token − t_first_token), null for a window without width.
    """

    size: str  # the preset's name for the prompt size, "3K"
    streams: int = measured_in("streams", says="requests in flight together")
    stream: int = measured_in("1", says="which of them, from 0")
    repeat: int = measured_in("1", says="which repetition, from 0")
    attempt: int = measured_in("1", 1, says="from 1; a retry is a row of its own")
    status: Status
    error_kind: str | None = None
    prompt_tokens: int | None = measured_in("tokens", None)
    completion_tokens: int | None = measured_in("tokens", None)
    tokens_by: str | None = None  # token_ids | per_chunk_usage | final_usage | estimated
    ttft_s: float | None = measured_in("s", None)
    first_answer_s: float | None = measured_in("s", None)
    last_token_s: float | None = measured_in("s", None)
    decode_tok_s: float | None = measured_in("tok/s", None)
    prefill_tok_s: float | None = measured_in("tok/s", None, says="prompt_tokens / ttft_s")
    tpot_s: float | None = measured_in("s", None)
    max_gap_s: float | None = measured_in("s", None)
    dispatch_late_s: float | None = measured_in("s", None)
    row_state: State = "unknown"
    flags: list[str] = []


class Knee(Row):
    """One load level, once: `streams` requests started together, fixed new tokens each."""

    streams: int = measured_in("streams", says="concurrency")
    repeat: int = measured_in("1", 0)
    new_tokens: int | None = measured_in("tokens", None, says="asked of each stream")
    completion_tokens: int | None = measured_in("tokens", None, says="all streams together")
    ok: int | None = measured_in("streams", None)
    failed: int | None = measured_in("streams", None)
    wall_s: float | None = measured_in("s", None, says="first dispatch to last token")
    aggregate_tok_s: float | None = measured_in("tok/s", None, says="completion_tokens / wall_s")
    per_stream_tok_s: float | None = measured_in("tok/s", None)
    runs_tok_s: list[float] = []  # the single runs, if this row is a published mean of several
    ttft_p50_s: float | None = measured_in("s", None)
    ttft_max_s: float | None = measured_in("s", None)
    loop_lag_max_s: float | None = measured_in("s", None, says="the client's own event loop")
    client_cpu_s: float | None = measured_in("s", None)
    row_state: State = "unknown"


register("decode", 1, Decode, "TTFT, prefill and decode speed by prompt size and streams")
register("knee", 1, Knee, "aggregate and per-stream speed by concurrency")
