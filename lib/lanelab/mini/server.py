"""The routes: what vLLM's OpenAI-compatible server answers, for the embedded engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lanelab.mini.engine import Engine, Event, Stream
from lanelab.mini.metrics import Metrics
from lanelab.mini.protocol import (
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    Plan,
    Refused,
    TokenizeRequest,
    parse,
    plan,
)
from lanelab.mini.text import TextStream
from lanelab.mini.tokenizer import MiniTokenizer

ENGINE_NAME = "lanelab-mini"
ENGINE_VERSION = "1"  # raised when the same request would be answered or timed differently
MAX_BODY_BYTES = 16_000_000


@dataclass
class Choice:
    """What has come of one sequence so far."""

    prompt: list[int]
    tokens: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: str | None = None


class Served:
    """One request on its way: its streams in the engine and their events."""

    def __init__(self, engine: Engine, request: CompletionRequest | ChatRequest, wanted: Plan) -> None:
        self.engine = engine
        self.choices = [Choice(prompt) for prompt in wanted.prompts]
        self.events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def sender(index: int) -> Callable[[Event], None]:
            def send(event: Event) -> None:
                # the loop is closed when the server goes down under a running stream
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self.events.put_nowait, (index, event))

            return send

        self.streams = [
            Stream(
                prompt=prompt,
                max_tokens=limit,
                min_tokens=request.min_tokens,
                sampling=request.sampling(index),
                end_ids=frozenset() if request.ignore_eos else frozenset({engine.end_id}),
                text=TextStream(request.stops(), include_stop=request.include_stop_str_in_output),
                send=sender(index),
            )
            for index, (prompt, limit) in enumerate(zip(wanted.prompts, wanted.max_tokens, strict=True))
        ]

    async def run(self) -> AsyncIterator[tuple[int, Event]]:
        """Events of all choices until each has ended; whoever stops listening frees the streams."""
        try:
            for stream in self.streams:
                self.engine.submit(stream)
            left = len(self.streams)
            while left:
                index, event = await self.events.get()
                choice = self.choices[index]
                if event.reason == "error":
                    raise Refused("the engine has died; its log says why", status=500)
                if event.token is not None:
                    choice.tokens.append(event.token)
                choice.text.append(event.text)
                if event.reason:
                    choice.finish_reason, choice.stop_reason = event.reason, event.stop_reason
                    left -= 1
                yield index, event
        finally:
            for stream, choice in zip(self.streams, self.choices, strict=True):
                if choice.finish_reason is None:
                    self.engine.abort(stream)

    def usage(self, prompts_shared_by: int) -> dict[str, int]:
        """Token counts; a prompt that several choices share counts once."""
        prompt = sum(len(choice.prompt) for choice in self.choices) // prompts_shared_by
        made = sum(len(choice.tokens) for choice in self.choices)
        return {"prompt_tokens": prompt, "total_tokens": prompt + made, "completion_tokens": made}


class Server:
    """Answers for one engine under one model name."""

    def __init__(self, engine: Engine, tokenizer: MiniTokenizer, metrics: Metrics, model_name: str) -> None:
        self.engine, self.tokenizer, self.metrics, self.model_name = engine, tokenizer, metrics, model_name
        self.created = int(time.time())

    def app(self) -> Starlette:
        """The ASGI application."""

        def guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request) -> Response:
                try:
                    return await handler(request)
                except Refused as refused:
                    return JSONResponse(refused.body(), status_code=refused.status)
                except ClientDisconnect:
                    return Response(status_code=499)

            return answer

        def route(path: str, handler: Callable[[Request], Awaitable[Response]], method: str) -> Route:
            return Route(path, guarded(handler), methods=[method])

        return Starlette(
            routes=[
                route("/health", self.health, "GET"),
                route("/version", self.version, "GET"),
                route("/metrics", self.metrics_text, "GET"),
                route("/v1/models", self.models, "GET"),
                route("/v1/completions", self.completions, "POST"),
                route("/v1/chat/completions", self.chat, "POST"),
                route("/tokenize", self.tokenize, "POST"),
                route("/detokenize", self.detokenize, "POST"),
            ],
            exception_handlers={HTTPException: _http_error},
        )

    async def health(self, request: Request) -> Response:
        """200 while the engine's thread works, else 503."""
        return Response(status_code=200 if self.engine.healthy else 503)

    async def version(self, request: Request) -> Response:
        """The engine's version."""
        return JSONResponse({"version": ENGINE_VERSION})

    async def metrics_text(self, request: Request) -> Response:
        """Prometheus text."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def models(self, request: Request) -> Response:
        """The one model."""
        entry = {
            "id": self.model_name,
            "object": "model",
            "created": self.created,
            "owned_by": ENGINE_NAME,
            "root": self.model_name,
            "parent": None,
            "max_model_len": self.engine.max_model_len,
        }
        return JSONResponse({"object": "list", "data": [entry]})

    async def tokenize(self, request: Request) -> Response:
        """Token ids of a prompt or a conversation."""
        asked: TokenizeRequest = parse(TokenizeRequest, await _json(request))
        self._known(asked.model)
        if (asked.prompt is None) == (asked.messages is None):
            raise Refused("give either prompt or messages", param="prompt")
        if asked.messages is not None:
            turns = [(message.role, message.text()) for message in asked.messages]
            tokens = self.tokenizer.encode_chat(turns, asked.add_generation_prompt)
        else:
            tokens = self.tokenizer.encode(asked.prompt or "")
        return JSONResponse(
            {
                "count": len(tokens),
                "max_model_len": self.engine.max_model_len,
                "tokens": tokens,
                "token_strs": self.tokenizer.pieces(tokens) if asked.return_token_strs else None,
            }
        )

    async def detokenize(self, request: Request) -> Response:
        """The text of token ids."""
        asked: DetokenizeRequest = parse(DetokenizeRequest, await _json(request))
        self._known(asked.model)
        wrong = [token for token in asked.tokens if not 0 <= token < self.tokenizer.size]
        if wrong:
            raise Refused(
                f"token id {wrong[0]} is out of vocabulary (valid: 0 to {self.tokenizer.size - 1})", param="tokens"
            )
        return JSONResponse({"prompt": self.tokenizer.decode(asked.tokens)})

    async def completions(self, request: Request) -> Response:
        """POST /v1/completions."""
        return await self._generate(request, CompletionRequest, Completions(self.model_name))

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        return await self._generate(request, ChatRequest, Chat(self.model_name))

    def _known(self, name: str | None) -> None:
        if name is not None and name != self.model_name:
            raise Refused(f"The model `{name[:200]}` does not exist.", param="model", status=404)

    async def _generate(self, request: Request, model: type[Any], form: Form) -> Response:
        asked = parse(model, await _json(request))
        self._known(asked.model)
        wanted = plan(asked, self.tokenizer, self.engine.max_model_len)
        if not self.engine.healthy:
            raise Refused("the engine has died; its log says why", status=500)
        served = Served(self.engine, asked, wanted)
        if wanted.stream:
            return StreamingResponse(_sse(served, wanted, form, asked.n), media_type="text/event-stream")
        await _until_done_or_gone(request, served)
        return JSONResponse(form.whole(served.choices, served.usage(asked.n), wanted.token_ids))


class Form(ABC):
    """How one endpoint spells its answers."""

    prefix, whole_object, chunk_object = "", "", ""

    def __init__(self, model_name: str) -> None:
        self.envelope = {"id": f"{self.prefix}-{uuid.uuid4().hex}", "created": int(time.time()), "model": model_name}

    def opening(self, index: int) -> dict[str, Any] | None:
        """A choice sent before the first token, if this endpoint has one."""
        return None

    @abstractmethod
    def piece(self, text: str) -> dict[str, Any]:
        """A stream's text as a choice's fields."""

    @abstractmethod
    def full(self, text: str) -> dict[str, Any]:
        """A whole text as a choice's fields."""

    def chunk(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None, **more: Any) -> bytes:
        """One event of the stream."""
        body: dict[str, Any] = {**self.envelope, "object": self.chunk_object, "choices": choices, **more}
        if usage is not None:
            body["usage"] = usage
        return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"

    def whole(self, choices: list[Choice], usage: dict[str, int], token_ids: bool) -> dict[str, Any]:
        """The answer without a stream."""
        made = []
        for index, choice in enumerate(choices):
            entry: dict[str, Any] = {"index": index, **self.full("".join(choice.text)), "logprobs": None}
            entry |= {"finish_reason": choice.finish_reason, "stop_reason": choice.stop_reason}
            if token_ids:
                entry |= {"token_ids": choice.tokens, "prompt_token_ids": choice.prompt}
            made.append(entry)
        return {**self.envelope, "object": self.whole_object, "choices": made, "usage": usage}


class Completions(Form):
    """`text` in every choice."""

    prefix, whole_object, chunk_object = "cmpl", "text_completion", "text_completion"

    def piece(self, text: str) -> dict[str, Any]:
        """`text`."""
        return {"text": text}

    def full(self, text: str) -> dict[str, Any]:
        """`text`."""
        return {"text": text}


class Chat(Form):
    """`delta` in a stream, opened by the role, `message` in a whole answer."""

    prefix, whole_object, chunk_object = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def opening(self, index: int) -> dict[str, Any] | None:
        """The role."""
        return {"index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}

    def piece(self, text: str) -> dict[str, Any]:
        """`delta`."""
        return {"delta": {"content": text}}

    def full(self, text: str) -> dict[str, Any]:
        """`message`."""
        return {"message": {"role": "assistant", "content": text}}


async def _sse(served: Served, wanted: Plan, form: Form, n: int) -> AsyncIterator[bytes]:
    opened: set[int] = set()
    events = served.run()
    try:
        async for index, event in events:
            usage = served.usage(n) if wanted.usage_always else None
            first = index not in opened
            opened.add(index)
            if first and (opening := form.opening(index)):
                yield form.chunk([opening])
            entry: dict[str, Any] = {"index": index, **form.piece(event.text), "logprobs": None}
            entry |= {"finish_reason": event.reason, "stop_reason": event.stop_reason}
            if wanted.token_ids:
                entry["token_ids"] = [] if event.token is None else [event.token]
                if first:
                    entry["prompt_token_ids"] = served.choices[index].prompt
            yield form.chunk([entry], usage)
        if wanted.usage_at_end:
            yield form.chunk([], served.usage(n))
    except Refused as refused:
        yield b"data: " + json.dumps(refused.body()).encode() + b"\n\n"
    finally:
        await events.aclose()  # type: ignore[attr-defined]
    yield b"data: [DONE]\n\n"


async def _until_done_or_gone(request: Request, served: Served) -> None:
    """Collect a whole answer; a client that hangs up meanwhile frees its streams. Raises `ClientDisconnect`."""

    async def collect() -> None:
        events = served.run()
        try:
            async for _ in events:
                pass
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    work, hang_up = asyncio.ensure_future(collect()), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({work, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        work.result()
    finally:
        for task in (work, hang_up):
            task.cancel()
        await asyncio.gather(work, hang_up, return_exceptions=True)


async def _json(request: Request) -> Any:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise Refused(f"the body is over {MAX_BODY_BYTES} bytes", status=413)
        parts.append(part)
    try:
        return json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {str(error)[:200]}") from error


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"message": error.detail, "type": error.detail, "param": None, "code": error.status_code}
    return JSONResponse({"error": body}, status_code=error.status_code, headers=error.headers)
