"""From timed events to the figures of one request. Pure: no socket, no clock.

A `Collector` takes the events of one streamed answer, each with the time of the read that completed
it, and gives the text of each channel and the figures. The events are kept, so that any figure can
be computed again (`collect`). The definitions:

- An event *carries tokens* if in any choice the content (`text` for completions), the reasoning, or
  the name or arguments of a tool call is a string that is not empty. Role-only chunks, empty
  strings, finish and usage chunks carry none.
- TTFT ends at the first such event on any channel; `first_answer_s` at the first one with content
  or a tool call.
- Decode tok/s = (N − n_first)/(t_last − t_first) over the events that carry tokens. N is the
  server's completion count; n_first the tokens of the first such event where the stream tells
  (running usage, `token_ids`, `logprobs.content`, one event only, or as many events as tokens),
  else 1, flagged. A window under 1 ms has no width and gives null.
- TPOT = (t_last − t_first)/(N − 1).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lanelab.lane.sse import Event

Status = Literal["ok", "failed", "truncated"]
Endpoint = Literal["chat", "completions"]
NO_WIDTH_S = 0.001
COUNT_MAX = 10**9  # of tokens in one request; a server that says more is wrong


@dataclass(frozen=True)
class TimedEvent:
    """One event of the stream and when it was complete, in seconds since the request was sent."""

    t_s: float
    data: str
    name: str = ""
    kind: str = "event"  # event | error_line | rest (its blank line never came)


@dataclass
class StreamResult:
    """One request, fully measured. Times are seconds since the last attempt's request was sent."""

    status: Status
    endpoint: Endpoint
    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, str]] = field(default_factory=list)  # name, arguments; by index
    finish_reason: str | None = None
    completion_tokens: int | None = None  # as the server counts, reasoning included
    prompt_tokens: int | None = None
    ttft_s: float | None = None
    first_answer_s: float | None = None
    last_token_s: float | None = None
    content_chunks: int = 0
    max_gap_s: float | None = None
    decode_tok_s: float | None = None
    tpot_s: float | None = None
    prefill_tok_s: float | None = None  # prompt_tokens / ttft_s
    tokens: int | None = None  # the N of the figures
    tokens_by: str | None = None  # token_ids | per_chunk_usage | final_usage | estimated
    cached_prompt_tokens: int | None = None  # usage.prompt_tokens_details.cached_tokens
    flags: list[str] = field(default_factory=list)
    error_kind: str | None = None
    error_message: str | None = None
    texts: list[str] | None = None  # with several choices
    attempts: list[dict[str, Any]] = field(default_factory=list)
    retry_wait_s: float | None = None  # the shortest wait between two attempts
    total_s: float | None = None  # to [DONE] or the end of the body
    connect_s: float | None = None  # of a new connection; before the clock of the other times
    sent_at: float | None = None  # time.perf_counter() when the request was sent
    model: str | None = None
    events: list[TimedEvent] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """All fields but the events; `error_kind` and `texts` only where there are any."""
        value = asdict(self)
        del value["events"], value["sent_at"]
        for name in ("error_kind", "error_message", "texts"):
            if value[name] is None:
                del value[name]
        return value


def need_tokens(result: StreamResult) -> StreamResult:
    """A result that is `ok` without one event that carried tokens becomes failed, error kind `no_tokens`."""
    if result.status == "ok" and not result.content_chunks:
        said = f", though the server counts {result.completion_tokens}" if result.completion_tokens else ""
        result.status, result.error_kind = "failed", "no_tokens"
        result.error_message = f"the stream ended well and brought no token{said}"
    return result


class Failed(Exception):
    """The stream said something that ends the request. Data: `kind`, `message`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Collector:
    """Takes events as they come; `done` once [DONE] came; `result` when the body has ended."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.events: list[TimedEvent] = []
        self.done = False
        self.failure: Failed | None = None
        self.unterminated = False
        self._texts: dict[int, list[str]] = {}
        self._reasoning: list[str] = []
        self._tools = _ToolCalls()
        self._finish: dict[int, str] = {}
        self._usage: dict[str, int | None] = {"completion_tokens": None, "prompt_tokens": None, "cached": None}
        self._usage_events = 0
        self._times: list[float] = []  # of events that carried tokens
        self._first_answer: float | None = None
        self._first_known: int | None = None  # tokens in the first of them
        self._ids: list[int | None] = []  # token ids of each of them, where given
        self._usage_on: list[bool] = []
        self._malformed_choice = False
        self._bad_usage = False

    @property
    def finished(self) -> bool:
        """Whether any choice gave a finish reason."""
        return bool(self._finish)

    def put(self, event: Event, t_s: float, *, rest: bool = False) -> None:
        """One event. After [DONE] or a failure nothing counts any more."""
        if self.done or self.failure:
            return
        self.events.append(TimedEvent(t_s, event.data, event.name, "rest" if rest else event.kind))
        try:
            self._take(event, t_s, rest)
        except Failed as failure:
            self.failure = failure

    def _take(self, event: Event, t_s: float, rest: bool) -> None:
        if event.kind == "error_line":
            raise Failed("server_error_event", event.data)
        if event.data.strip() == "[DONE]" and event.name != "error":
            self.done = True
            return
        try:
            value = json.loads(event.data, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            if rest:
                return
            if event.name == "error":
                raise Failed("server_error_event", event.data) from None
            raise Failed("malformed_event", f"{error}: {event.data[:200]!r}") from None
        if event.name == "error":
            raise Failed("server_error_event", message_of(value))
        if not isinstance(value, dict):
            self._malformed_choice = True
            return
        if is_error(value):
            raise Failed("server_error_event", message_of(value))
        usage = self._take_usage(value.get("usage"))
        choices = self._typed(value.get("choices"), list) or []
        self._take_choices([choice for choice in choices if self._typed(choice, dict)], usage, t_s)

    def _typed(self, value: Any, wanted: type) -> Any:
        """The value if it has that type, else None; anything but null of another type is noted."""
        if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
            return value
        self._malformed_choice = self._malformed_choice or value is not None
        return None

    def _take_usage(self, usage: Any) -> int | None:
        if not isinstance(usage, dict):
            self._bad_usage = self._bad_usage or usage is not None
            return None
        details = usage.get("prompt_tokens_details")
        given = {name: usage.get(name) for name in ("completion_tokens", "prompt_tokens")}
        given["cached"] = details.get("cached_tokens") if isinstance(details, dict) else None
        for name, value in given.items():
            if (count := _count(value)) is not None:
                self._usage[name] = count
            elif value is not None:  # a count that cannot be: what was said before it is no better
                self._usage[name], self._bad_usage = None, True
        self._usage_events += 1
        return _count(usage.get("completion_tokens"))

    def _take_choices(self, choices: list[dict[str, Any]], usage: int | None, t_s: float) -> None:
        carries = answers = False
        ids = logprobs = 0
        for choice in choices:
            index = _count(self._typed(choice.get("index"), int)) or 0
            part = self._typed(choice.get("delta") if self.endpoint == "chat" else choice, dict) or {}
            content = self._typed(part.get("content" if self.endpoint == "chat" else "text"), str)
            reasoning = _string(part.get("reasoning_content")) or _string(part.get("reasoning"))
            called = self._tools.take(part.get("tool_calls"), keep=index == 0)
            pieces = self._texts.setdefault(index, [])
            if content:
                pieces.append(content)
            if reasoning and index == 0:
                self._reasoning.append(reasoning)
            if finish := _string(choice.get("finish_reason")):
                self._finish[index] = finish
            answers = answers or bool(content) or called
            carries = carries or bool(content or reasoning) or called
            ids += _length(choice.get("token_ids")) or _length(part.get("token_ids"))
            given = choice.get("logprobs")
            logprobs += _length(given.get("content")) if isinstance(given, dict) else 0
        if not carries:
            return
        if not self._times:
            self._first_known = usage or ids or logprobs or None
        if answers and self._first_answer is None:
            self._first_answer = t_s
        self._times.append(t_s)
        self._ids.append(ids or None)
        self._usage_on.append(usage is not None)

    def result(self, *, failure: Failed | None = None) -> StreamResult:
        """The figures of what came; `failure` is one of the connection."""
        failure = self.failure or (None if self.done else failure)
        status: Status = "ok"
        kind = message = None
        if failure:
            status, kind, message = "failed", failure.kind, failure.message
        elif not (self.done or self.finished):
            status, kind = "truncated", "incomplete_stream"
            message = "the body ended with neither a finish reason nor [DONE]"
        elif self._malformed_choice and not self._times:
            status, kind = "failed", "malformed_event"
            message = "no token came, and choices that are not of the format did"
        made = StreamResult(
            status=status,
            endpoint=self.endpoint,
            text=_joined(self._texts.get(0, [])),
            reasoning=_joined(self._reasoning),
            tool_calls=self._tools.made(),
            finish_reason=self._finish.get(0),
            completion_tokens=self._usage["completion_tokens"],
            prompt_tokens=self._usage["prompt_tokens"],
            cached_prompt_tokens=self._usage["cached"],
            first_answer_s=self._first_answer,
            content_chunks=len(self._times),
            error_kind=kind,
            error_message=message,
            events=self.events,
        )
        if len(self._texts) > 1:
            made.texts = [_joined(self._texts[index]) for index in sorted(self._texts)]
        self._figures(made)
        return made

    def _figures(self, made: StreamResult) -> None:
        times = self._times
        made.tokens, made.tokens_by = self._counted()
        if times:
            made.ttft_s, made.last_token_s = times[0], times[-1]
            made.max_gap_s = max((b - a for a, b in itertools.pairwise(times)), default=None)
        first, assumed = self._first_tokens(made.tokens if made.tokens_by != "estimated" else None)
        made.decode_tok_s = decode_speed(times, made.tokens, first)
        made.tpot_s = tpot(times, made.tokens)
        if made.prompt_tokens and made.ttft_s:
            made.prefill_tok_s = made.prompt_tokens / made.ttft_s
        flags = {
            "usage_missing": not self._usage_events,
            "no_done": not self.done,
            "no_finish_reason": not self._finish,
            "unterminated_last_event": self.unterminated,
            "first_chunk_multi_token": made.status == "ok" and not assumed and (first or 0) > 1,
            "first_chunk_tokens_assumed": made.status == "ok" and assumed and self._usage_events > 0,
            "tokens_estimated": made.tokens_by == "estimated",
            "token_count_mismatch": self._mismatch(),
            "malformed_choice": self._malformed_choice,
            "bad_usage": self._bad_usage,
        }
        made.flags = [name for name, present in flags.items() if present]

    def _first_tokens(self, count: int | None) -> tuple[int | None, bool]:
        """n_first, and whether it was assumed; (None, False) where no event carried a token."""
        chunks = len(self._times)
        if not chunks:
            return None, False
        if self._first_known:
            return self._first_known, False
        if count is not None and chunks == 1:
            return count, False
        if count is not None and chunks == count:
            return 1, False
        return 1, True

    def _counted(self) -> tuple[int | None, str | None]:
        """N and how it is known, best grade first."""
        by_ids = sum(count or 0 for count in self._ids)
        every = len(self._times) > 0
        if (count := self._usage["completion_tokens"]) is not None:
            if every and by_ids == count and all(self._ids):
                return count, "token_ids"
            if every and all(self._usage_on):
                return count, "per_chunk_usage"
            return count, "final_usage"
        if every and all(self._ids):
            return by_ids, "token_ids"
        return (len(self._times), "estimated") if every else (None, None)

    def _mismatch(self) -> bool:
        """Token ids came with every event, and there are more of them than the server counted."""
        count = self._usage["completion_tokens"]
        return count is not None and all(self._ids) and sum(ids or 0 for ids in self._ids) > count


def decode_speed(times: list[float], tokens: int | None, first: int | None) -> float | None:
    """(N − n_first)/(t_last − t_first) in tok/s; None for a window under 1 ms or without a count."""
    if not times or tokens is None or first is None:
        return None
    width = times[-1] - times[0]
    if width < NO_WIDTH_S or tokens < first:
        return None
    return (tokens - first) / width


def tpot(times: list[float], tokens: int | None) -> float | None:
    """(t_last − t_first)/(N − 1) in s; None for fewer than two tokens or a window without width."""
    if not times or tokens is None or tokens < 2 or times[-1] - times[0] < NO_WIDTH_S:
        return None
    return (times[-1] - times[0]) / (tokens - 1)


def collect(events: Iterable[TimedEvent], endpoint: Endpoint, failure: Failed | None = None) -> StreamResult:
    """The result again from a kept timeline: figures and text, not attempts or connection."""
    collector = Collector(endpoint)
    for event in events:
        kind = "error_line" if event.kind == "error_line" else "event"
        collector.unterminated = collector.unterminated or event.kind == "rest"
        collector.put(Event(event.data, event.name, kind), event.t_s, rest=event.kind == "rest")
    return collector.result(failure=failure)


def is_error(value: dict[str, Any]) -> bool:
    """Whether a JSON object is an error: an `error` that is not null, or `"object": "error"`."""
    return value.get("error") is not None or value.get("object") == "error"


def message_of(value: Any) -> str:
    """What an error object says, in one line of at most 500 characters."""
    for name in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(name) is not None:
            return message_of(value[name])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())[:500]


class _ToolCalls:
    """Tool calls put together from fragments; the index says where a fragment belongs."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, Any]] = {}
        self._last = 0

    def take(self, fragments: Any, *, keep: bool) -> bool:
        """Whether any fragment carried a name or arguments; kept only for choice 0."""
        carried = False
        for fragment in fragments if isinstance(fragments, list) else []:
            if not isinstance(fragment, dict):
                continue
            function = fragment.get("function")
            function = function if isinstance(function, dict) else {}
            name, arguments = _string(function.get("name")), _string(function.get("arguments"))
            carried = carried or bool(name or arguments)
            if keep:
                self._put(fragment, name, arguments)
        return carried

    def _put(self, fragment: dict[str, Any], name: str, arguments: str) -> None:
        identity = _string(fragment.get("id"))
        index = _count(fragment.get("index"))
        if index is None:  # some servers leave it out and send whole calls
            known = [place for place, call in self._calls.items() if identity and call["id"] == identity]
            fresh = bool(identity) and not known and bool(self._calls)
            index = known[0] if known else (max(self._calls) + 1 if fresh else self._last)
        self._last = index
        call = self._calls.setdefault(index, {"id": identity, "name": "", "arguments": []})
        if name and name != call["name"]:  # some servers repeat the name in every fragment
            call["name"] += name
        if arguments:
            call["arguments"].append(arguments)

    def made(self) -> list[dict[str, str]]:
        return [
            {"name": _joined([call["name"]]), "arguments": _joined(call["arguments"])}
            for _, call in sorted(self._calls.items())
        ]


def _joined(pieces: list[str]) -> str:
    """The pieces as one text; halves of a surrogate pair meet, a lone half becomes U+FFFD."""
    text = "".join(pieces)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else None


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0
