"""`lanelab ask`: one request, fully measured."""

from __future__ import annotations

from dataclasses import asdict

import click

from lanelab import lane as lanes
from lanelab.cli.output import Answer, command
from lanelab.errors import UsageError
from lanelab.lane.stream import request
from lanelab.lane.timeline import StreamResult


@command("ask", 'lanelab ask "Why is the sky blue?" --lane mini --max-tokens 64')
@click.argument("prompt")
@click.option("--url", help="Base URL of an OpenAI-compatible server; /v1 is added if absent.")
@click.option("--lane", "lane", help="A lane's name instead of a URL.")
@click.option("--endpoint", type=click.Choice(["chat", "completions"]), default="chat", show_default=True)
@click.option("--max-tokens", type=click.IntRange(1), default=128, show_default=True)
@click.option("--idle-s", type=click.FloatRange(0.001), default=300.0, help="Longest silence that is waited out.")
@click.option("--events", is_flag=True, help="With --json: every event with its time and data.")
def ask(
    prompt: str,
    url: str | None,
    lane: str | None,
    endpoint: str,
    max_tokens: int,
    idle_s: float,
    events: bool,
) -> Answer:
    """One request, fully measured: the answer, times, tokens, flags and attempts."""
    if (url is None) == (lane is None):
        raise UsageError("say where to ask: either --url URL or --lane NAME")
    where = url or lane or ""
    at = lanes.resolve(where if lane or "://" in where else f"http://{where}")
    result = request(
        at.base_url,
        endpoint=endpoint,
        prompt=prompt,
        max_tokens=max_tokens,
        model=at.model,
        headers=at.headers(),
        idle_s=idle_s,
    )
    data = result.summary()
    if events:
        data["events"] = [asdict(event) for event in result.events]
    if result.status != "ok":
        click.echo(f"error: {result.error_kind}: {result.error_message}", err=True)
    return Answer(data, _text(result), 0 if result.status == "ok" else 1)


def _text(result: StreamResult) -> str:
    """The answer, and one line of figures."""
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
    figures += result.flags
    return "\n".join([*(part for part in parts if part), "", " · ".join(figures)]).strip("\n")
