"""`lanelab ask`: one request, fully measured."""

from __future__ import annotations

from dataclasses import asdict

import click

from lanelab import lane as lanes
from lanelab.cli.numbers import Finite
from lanelab.cli.output import Answer, command
from lanelab.errors import UsageError
from lanelab.lane.stream import request
from lanelab.lane.timeline import StreamResult, need_tokens

FLAGS = {
    "usage_missing": "the server did not say how many tokens",
    "no_done": "no [DONE] at the end",
    "no_finish_reason": "no finish reason",
    "unterminated_last_event": "the last event was not ended",
    "first_chunk_multi_token": "several tokens in the first chunk",
    "first_chunk_tokens_assumed": "tokens of the first chunk assumed to be one",
    "tokens_estimated": "tokens estimated from the chunks",
    "token_count_mismatch": "more token ids than the server counts",
    "malformed_choice": "choices that are not of the format",
    "bad_usage": "counts of the server that cannot be",
}


@command("ask", 'lanelab ask "Why is the sky blue?" --lane mini --max-tokens 64')
@click.argument("prompt")
@click.option("--url", help="Base URL of an OpenAI-compatible server; /v1 is added if absent.")
@click.option("--lane", "lane", help="A lane's name instead of a URL.")
@click.option("--endpoint", type=click.Choice(["chat", "completions"]), default="chat", show_default=True)
@click.option("--max-tokens", type=click.IntRange(1), default=128, show_default=True)
@click.option("--idle-s", type=Finite(0.001), default=300.0, show_default=True, help="Longest wait for the next event.")
@click.option("--timeout-s", type=Finite(0.001), default=600.0, show_default=True, help="Longest time in all.")
@click.option("--events", is_flag=True, help="With --json: every event with its time and data.")
def ask(
    prompt: str,
    url: str | None,
    lane: str | None,
    endpoint: str,
    max_tokens: int,
    idle_s: float,
    timeout_s: float,
    events: bool,
) -> Answer:
    """One request, fully measured: the answer, times, tokens, flags and attempts."""
    if (url is None) == (lane is None):
        raise UsageError("say where to ask: either --url URL or --lane NAME")
    where = (url if lane is None else lane) or ""
    at = lanes.resolve(where if lane is not None or "://" in where else f"http://{where}")
    result = request(
        at.base_url,
        endpoint=endpoint,
        prompt=prompt,
        max_tokens=max_tokens,
        model=at.model,
        headers=at.headers(),
        idle_s=idle_s,
        total_s=timeout_s,
    )
    if result.finish_reason is None:  # one that ends for a reason may be empty
        result = need_tokens(result)
    data = result.summary()
    if events:
        data["events"] = [asdict(event) for event in result.events]
    if result.status != "ok":
        click.echo(f"error: {result.error_kind}: {result.error_message}", err=True)
    says = lanes.load(lane).says if lane is not None and "://" not in lane else ""
    return Answer(data, _text(result, says), 0 if result.status == "ok" else 1)


def _text(result: StreamResult, says: str = "") -> str:
    """The answer, one line of figures, and what the lane says of itself."""
    parts = [result.reasoning and f"[reasoning] {result.reasoning.strip()}", result.text.strip()]
    parts += [f"[calls] {call['name']}({call['arguments']})" for call in result.tool_calls]
    figures: list[str] = [result.status]
    if result.ttft_s is not None:
        figures.append(f"first token {result.ttft_s:.3f} s")
    if result.decode_tok_s is not None:
        figures.append(f"decode {result.decode_tok_s:.1f} tok/s")
    if result.tokens is not None:
        about = "about " if result.tokens_by == "estimated" else ""
        figures.append(f"{about}{result.tokens} tokens ({result.finish_reason or 'no finish reason'})")
    if result.prompt_tokens is not None:
        figures.append(f"prompt {result.prompt_tokens} tokens")
    if len(result.attempts) > 1:
        figures.append(f"{len(result.attempts)} attempts")
    figures += [FLAGS.get(flag, flag) for flag in result.flags]
    lines = [*(part for part in parts if part), "", " · ".join(figures), says and f"lane: {says}"]
    return "\n".join(lines).strip("\n")
