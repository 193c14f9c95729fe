"""The client against a server of raw sockets whose send times are known."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from lanelab.errors import UsageError
from lanelab.lane.stream import arequest, request, run_now
from lanelab.lane.timeline import StreamResult
from lanelab.lane.transport import clock

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def token(text: str, finish: str | None = None) -> bytes:
    value = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


Answer = Callable[[asyncio.StreamWriter, int], Awaitable[None]]


def ask(answer: Answer, **settings: Any) -> StreamResult:
    """One request to a server that answers its n-th connection with `answer(writer, n)`."""

    async def run() -> StreamResult:
        count = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            count += 1
            await answer(writer, count)
            if not writer.transport.is_closing():
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await arequest(f"http://127.0.0.1:{port}/v1", prompt="hi", model="m", **settings)
        finally:
            server.close()

    return asyncio.run(run())


def test_times_are_those_of_the_sends() -> None:
    sent: list[float] = []

    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(HEAD)
        for delay_s, text in ((0.15, "a"), (0.1, "b"), (0.25, "c")):
            await asyncio.sleep(delay_s)
            writer.write(token(text))
            await writer.drain()
            sent.append(clock())
        writer.write(b"data: [DONE]\n\n")

    ask(answer)  # imports are not part of a time to first token
    sent.clear()
    result = ask(answer)
    assert result.status == "ok" and result.sent_at is not None
    assert result.ttft_s == pytest.approx(sent[0] - result.sent_at, abs=0.02)
    assert result.last_token_s == pytest.approx(sent[2] - result.sent_at, abs=0.02)
    assert result.max_gap_s == pytest.approx(0.25, abs=0.02)


def test_retries_are_attempts_of_their_own_and_no_part_of_the_times() -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 1:
            writer.write(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0.3\r\nContent-Length: 0\r\n\r\n")
        elif number == 2:
            writer.transport.abort()
        else:
            writer.write(HEAD + token("x", "stop"))

    result = ask(answer)
    assert result.attempts == [{"http_status": 429}, {"error_kind": "connection_closed"}, {"http_status": 200}]
    assert result.retry_wait_s is not None and result.retry_wait_s >= 0.3
    assert result.ttft_s is not None and result.ttft_s < 0.1
    assert result.flags == ["usage_missing", "no_done", "tokens_estimated"]


def test_nothing_is_tried_again_after_a_200() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(HEAD + token("x"))

    result = ask(answer)
    assert (result.status, result.error_kind, len(result.attempts)) == ("truncated", "incomplete_stream", 1)


def test_a_silent_server_is_a_timeout() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(HEAD + token("x"))
        await asyncio.sleep(1.0)

    assert ask(answer, idle_s=0.1).error_kind == "timeout"
    result = ask(answer, total_s=0.1)
    assert (result.status, result.error_kind, result.text) == ("failed", "timeout", "x")


def test_comments_are_no_sign_of_life() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(HEAD + token("x"))
        for _ in range(40):
            writer.write(b": ping\n\n")
            await asyncio.sleep(0.05)

    result = ask(answer, idle_s=0.3)
    assert (result.status, result.error_kind, result.text) == ("failed", "timeout", "x")
    assert result.total_s is not None and result.total_s < 1.5


def test_an_answer_without_end_ends_at_the_total_limit() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(HEAD)
        for _ in range(200):
            writer.write(token("x"))
            await asyncio.sleep(0.01)

    result = ask(answer, total_s=0.3, max_tokens=4)
    assert (result.status, result.error_kind) == ("failed", "timeout")
    assert result.total_s is not None and result.total_s < 1.5


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b'{"error": "loading"}', "json_error_body"), (b'{"object": "error", "message": "m"}', "json_error_body"),
     (b'{"choices": []}', "not_event_stream"), (b"<html>", "not_event_stream"), (b"", "not_event_stream"),
     (b'{"broken', "not_event_stream")],
)  # fmt: skip
def test_a_200_that_is_no_stream(body: bytes, kind: str) -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body)

    assert ask(answer).error_kind == kind


def test_garbage_instead_of_http_is_a_failure() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(b"\x16\x03\x01 not http\r\n\r\n")

    assert ask(answer).error_kind == "bad_http"


def test_nobody_there_is_a_failure_without_a_second_try() -> None:
    result = request("http://127.0.0.1:1/v1", prompt="hi", model="m")
    assert (result.status, result.error_kind, result.attempts) == (
        "failed",
        "connect_failed",
        [{"error_kind": "connect_failed"}],
    )


def test_token_ids_need_the_completions_endpoint() -> None:
    with pytest.raises(UsageError, match="chat"):
        request("http://127.0.0.1:1/v1", prompt=[1, 2], model="m")


def test_the_sync_call_works_inside_a_running_loop() -> None:
    async def inside() -> StreamResult:
        return request("http://127.0.0.1:1/v1", prompt="hi", model="m")

    assert asyncio.run(inside()).error_kind == "connect_failed"


def test_an_interrupt_inside_a_running_loop_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []
    began = threading.Event()

    async def work() -> None:
        try:
            began.set()
            await asyncio.sleep(30)
        finally:
            cleaned.append("cancelled")

    class Interrupted(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            began.wait(5)
            raise KeyboardInterrupt

    class Threads(ThreadPoolExecutor):
        def submit(self, *call: Any, **named: Any) -> Any:
            super().submit(*call, **named)
            return Interrupted()

    monkeypatch.setattr("lanelab.lane.stream.ThreadPoolExecutor", Threads)

    async def inside() -> None:
        run_now(work())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(inside())
    assert cleaned == ["cancelled"]
