"""Rows of the long-context workload: a code hidden in a long text, and decode behind the same depth of context."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register


class Needle(Row):
    """One long prompt. `task` is `needle` (find the code at `depth`) or `decode` (a longer answer, no code)."""

    task: Literal["needle", "decode"]
    size_tokens: int | None = measured_in(
        "tokens", None, says="nominal prompt size; null where only the real one is known"
    )
    depth: float | None = measured_in("1", None, says="where the code stands, as a share of the prompt")
    prompt_tokens: int | None = measured_in("tokens", None)
    completion_tokens: int | None = measured_in("tokens", None)
    ttft_s: float | None = measured_in("s", None)
    prefill_tok_s: float | None = measured_in("tok/s", None, says="prompt_tokens / ttft_s")
    decode_tok_s: float | None = measured_in("tok/s", None, says="over a dozen tokens only, if task is needle")
    passed: bool | None = None
    code: str | None = None
    answer: str | None = None
    row_state: Literal["warm", "cold", "contended", "unknown"] = "unknown"


register("needle", 1, Needle, "long context: codes found, time to first token and decode by prompt size")
