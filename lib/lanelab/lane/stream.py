"""The stream client: one request to an OpenAI-style server, measured.

Every attempt is one HTTP request. A 429, a 503 and a connection that ended before any byte of the
answer are tried again, after the server's `Retry-After` or a wait of our own; each attempt is kept,
and the clock of the figures starts when the last one was sent, so that a wait is never part of a
time to first token. Nothing is tried again after a 200. Reading ends at `[DONE]`.

`arequest` is the client; `request` runs it for callers without an event loop.
"""

from __future__ import annotations

import asyncio
import email.utils
import errno
import itertools
import json
import math
import os
import time
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import httpcore
import httpx

from lanelab.errors import UsageError
from lanelab.lane import sse
from lanelab.lane.timeline import Collector, Endpoint, Failed, StreamResult, TimedEvent, is_error, message_of
from lanelab.lane.transport import Wire, client, clock, watch

__all__ = ["StreamResult", "TimedEvent", "arequest", "request"]

T = TypeVar("T")
ATTEMPTS = 3
WAIT_MAX_S = 60.0  # a server that asks for more is not waited for
PATHS = {"chat": "/chat/completions", "completions": "/completions"}
_BODY_LIMIT = 1024 * 1024  # of a body that is no event stream
_CONNECTION_ERRORS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)


@dataclass
class _Attempt:
    """How one HTTP request ended."""

    http_status: int | None
    failure: Failed | None
    collector: Collector
    wire: Wire
    started: float
    ended: float
    retry_after_s: float | None = None
    again: bool = False


async def arequest(
    base_url: str,
    *,
    endpoint: Endpoint = "chat",
    prompt: str | list[int] | None = None,
    messages: list[dict[str, Any]] | None = None,
    max_tokens: int | None = None,
    model: str,
    extra: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    attempts: int = ATTEMPTS,
    idle_s: float = 300.0,
    total_s: float | None = None,
    http: httpx.AsyncClient | None = None,
) -> StreamResult:
    """One streamed request. `base_url` ends in /v1; `extra` are further fields of the body, `headers` of HTTP.

    A failure of the server or the connection is a result with `status` "failed", never an
    exception. `idle_s` bounds the wait for the next event (a comment is none), `total_s` each attempt
    as a whole (error kind `timeout`). `http` shares connections between requests; by default each has its own.
    Raises `UsageError` for a prompt that does not fit the endpoint.
    """
    body = _body(endpoint, prompt, messages, max_tokens, model, extra)
    own = http or client(idle_s=idle_s)
    tried: list[_Attempt] = []
    try:
        while True:
            attempt = await _attempt(
                own, base_url.rstrip("/") + PATHS[endpoint], body, headers or {}, endpoint, (idle_s, total_s)
            )
            tried.append(attempt)
            wait_s = _wait(attempt, len(tried))
            if not attempt.again or len(tried) >= attempts or wait_s > WAIT_MAX_S:
                return _result(tried, model)
            await asyncio.sleep(wait_s + 0.005)  # sleep may end a little early
    finally:
        if http is None:
            await own.aclose()


def request(base_url: str, **settings: Any) -> StreamResult:
    """`arequest` for callers without an event loop, and for those in a notebook with one."""
    return run_now(arequest(base_url, **settings))


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also inside a thread whose event loop already runs (a notebook).

    An interrupt of the waiting thread cancels the work and waits until it has cleaned up.
    """
    if not _loop_runs():
        return asyncio.run(work)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def inside() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(asyncio.run, inside())
        try:
            return running.result()
        except KeyboardInterrupt:
            loop, task = begun.result()
            if not running.done():
                loop.call_soon_threadsafe(task.cancel)
            raise


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _body(
    endpoint: Endpoint,
    prompt: str | list[int] | None,
    messages: list[dict[str, Any]] | None,
    max_tokens: int | None,
    model: str,
    extra: dict[str, Any] | None,
) -> bytes:
    if endpoint not in PATHS:
        raise UsageError(f"unknown endpoint {endpoint!r} (valid: {', '.join(PATHS)})")
    value: dict[str, Any] = {"model": model}
    if endpoint == "chat":
        if messages is None and not isinstance(prompt, str):
            raise UsageError("endpoint 'chat' takes messages or a prompt of text, not token ids")
        value["messages"] = messages if messages is not None else [{"role": "user", "content": prompt}]
    else:
        if prompt is None:
            raise UsageError("endpoint 'completions' takes a prompt (text or token ids), not messages")
        value["prompt"] = prompt
    if max_tokens is not None:
        value["max_tokens"] = max_tokens
    value |= {"stream": True, "stream_options": {"include_usage": True}} | (extra or {})
    return json.dumps(value).encode()


async def _attempt(
    http: httpx.AsyncClient,
    url: str,
    body: bytes,
    headers: dict[str, str],
    endpoint: Endpoint,
    limits_s: tuple[float, float | None],
) -> _Attempt:
    idle_s, total_s = limits_s
    wire = watch()
    collector = Collector(endpoint)
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **headers}
    made = _Attempt(None, None, collector, wire, clock(), 0.0)
    try:
        async with (
            asyncio.timeout(total_s),
            http.stream("POST", url, content=body, headers=headers) as response,
        ):
            made.http_status = response.status_code
            if response.status_code == 200:
                made.failure = await _read_stream(response, collector, wire, idle_s)
            else:
                made.retry_after_s = _retry_after(response.headers.get("retry-after"))
                said = await _read_some(response)
                made.failure = Failed(f"http_{response.status_code}", _said(said))
                made.again = response.status_code in {429, 503}
    except TimeoutError:
        made.failure = made.failure or Failed("timeout", f"not done after {total_s:g} s")
    except httpcore.TimeoutException as error:
        kind = "connect_failed" if isinstance(error, httpcore.ConnectTimeout) else "timeout"
        made.failure = made.failure or Failed(kind, f"no byte for too long ({type(error).__name__})")
    except (*_CONNECTION_ERRORS, httpx.DecodingError) as error:
        made.failure, made.again = (
            made.failure or _broken(error, wire),
            wire.sent_at is not None and not wire.bytes_read,
        )
    made.ended = clock()
    return made


async def _read_stream(response: httpx.Response, collector: Collector, wire: Wire, idle_s: float) -> Failed | None:
    """Feed the collector until [DONE], a failure, the end of the body or `idle_s` without an event."""
    loop = asyncio.get_running_loop()
    parser = sse.Parser()
    start = wire.sent_at or 0.0
    raw = bytearray()
    last = start
    try:
        async with asyncio.timeout(idle_s) as idle:
            async for chunk in response.aiter_bytes():
                last = wire.read_at or clock()
                if not parser.lines and len(raw) < _BODY_LIMIT:
                    raw += chunk
                events = parser.feed(chunk)
                for event in events:
                    collector.put(event, last - start)
                if collector.done or collector.failure:
                    return None
                if events:
                    idle.reschedule(loop.time() + idle_s)
    except TimeoutError:
        if not idle.expired():
            raise
        return Failed("timeout", f"no event for {idle_s:g} s")
    except sse.EventTooBig as error:
        return Failed("malformed_event", str(error))
    except httpcore.RemoteProtocolError:
        if not wire.closed:  # broken framing; a close without HTTP's own end is an end of the body
            raise
    if not parser.lines and (failure := _no_stream(response, bytes(raw))):
        return failure
    left, collector.unterminated = parser.rest()
    if left:
        collector.put(left, last - start, rest=left.kind == "event")
    return None


def _no_stream(response: httpx.Response, body: bytes) -> Failed | None:
    """Why a body without one line of an event stream is none; None for an empty event stream."""
    said_stream = response.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        if said_stream and not body.lstrip().startswith(b"{"):
            return None
        return Failed("not_event_stream", _said(body) or "an empty body")
    if isinstance(value, dict) and is_error(value):
        return Failed("json_error_body", message_of(value))
    return Failed("not_event_stream", _said(body))


async def _read_some(response: httpx.Response) -> bytes:
    """What a refusal says; a body that breaks off or never ends does not change that it is one."""
    body = bytearray()
    try:
        async with asyncio.timeout(10.0):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _BODY_LIMIT:
                    break
    except (TimeoutError, *_CONNECTION_ERRORS, httpx.DecodingError):
        pass
    return bytes(body)


def _said(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        return message_of(json.loads(text))
    except (ValueError, RecursionError):
        return " ".join(text.split())[:500]


def _broken(error: Exception, wire: Wire) -> Failed:
    """The kind of a connection's end. A failure to connect is not tried again: no server is there."""
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, httpcore.ConnectError) or (wire.sent_at is None and not wire.bytes_read):
        return Failed("connect_failed", message)
    if not wire.bytes_read:
        return Failed("connection_closed", message)
    if isinstance(error, httpcore.ReadError | httpcore.WriteError | OSError):
        return Failed("connection_reset", os.strerror(errno.ECONNRESET) if not str(error) else message)
    return Failed("incomplete_stream" if wire.closed else "bad_http", message)


def _retry_after(value: str | None) -> float | None:
    """Seconds or an HTTP date; None if there is neither."""
    if not value:
        return None
    try:
        return max(0.0, float(value)) if math.isfinite(float(value)) else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _wait(attempt: _Attempt, number: int) -> float:
    return attempt.retry_after_s if attempt.retry_after_s is not None else 0.25 * 2**number


def _result(tried: list[_Attempt], model: str) -> StreamResult:
    last = tried[-1]
    made = last.collector.result(failure=last.failure)
    made.model = model
    made.attempts = [
        {"http_status": one.http_status}
        if one.http_status is not None
        else {"error_kind": one.failure.kind if one.failure else "unknown"}
        for one in tried
    ]
    waits = [after.started - before.ended for before, after in itertools.pairwise(tried)]
    made.retry_wait_s = min(waits, default=None)
    wire = last.wire
    made.sent_at = wire.sent_at
    if wire.sent_at is not None:
        made.total_s = last.ended - wire.sent_at
        if wire.connected_at is not None:
            made.connect_s = wire.connected_at - last.started
    return made
