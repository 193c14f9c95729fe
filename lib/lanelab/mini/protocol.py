"""Requests as clients send them, and what becomes of them; anything that is not honoured is refused.

Field names and meanings are those of vLLM's OpenAI-compatible server. Unknown fields are ignored, as
there; a field that is known there and would change the answer, but is not supported here, is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lanelab.mini.sampling import Sampling
from lanelab.mini.tokenizer import MiniTokenizer

MAX_SEQUENCES = 256
_NOT_SUPPORTED: dict[str, tuple[Any, ...]] = {
    # name: values that change nothing
    "echo": (None, False),
    "suffix": (None, ""),
    "logprobs": (None, False, 0),
    "top_logprobs": (None, 0),
    "prompt_logprobs": (None,),
    "best_of": (None, 1),
    "use_beam_search": (None, False),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "min_p": (None, 0),
    "logit_bias": (None, {}),
    "stop_token_ids": (None, []),
    "response_format": (None, {"type": "text"}),
    "structured_outputs": (None,),
    "tools": (None, []),
    "tool_choice": (None, "none", "auto"),
}


class Refused(Exception):
    """A request that cannot be honoured: HTTP status, vLLM's error type, message, parameter."""

    def __init__(self, message: str, *, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.status = param, status
        self.type = {404: "NotFoundError", 400: "BadRequestError", 413: "BadRequestError"}.get(
            status, "InternalServerError"
        )

    def body(self) -> dict[str, Any]:
        """The error object that goes to the client."""
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.status}}


class StreamOptions(BaseModel):
    """What a stream tells beside its text."""

    include_usage: bool = False
    continuous_usage_stats: bool = False


def _number(value: Any) -> Any:
    """Pydantic would take "3" and true for numbers; neither is one in JSON."""
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


Int = Annotated[int, BeforeValidator(_number)]
Float = Annotated[float, BeforeValidator(_number)]


class Common(BaseModel):
    """Fields of completions and chat alike."""

    model_config = ConfigDict(extra="allow")

    model: str | None = None
    n: Annotated[Int, Field(ge=1)] = 1
    max_tokens: Int | None = None
    min_tokens: Annotated[Int, Field(ge=0)] = 0
    temperature: Annotated[Float, Field(ge=0, allow_inf_nan=False)] | None = None
    top_p: Annotated[Float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[Int, Field(ge=-1)] | None = None
    seed: Annotated[Int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = False

    def sampling(self, offset: int) -> Sampling:
        """How the n-th choice draws; with a seed each choice gets one of its own."""
        return Sampling(
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            top_k=self.top_k or 0,
            seed=None if self.seed is None else self.seed + offset,
        )

    def stops(self) -> list[str]:
        """The stop strings."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or [])


Tokens = list[Annotated[int, Field(strict=True)]]


class CompletionRequest(Common):
    """POST /v1/completions."""

    prompt: str | Tokens | list[str] | list[Tokens]

    def prompts(self, tokenizer: MiniTokenizer) -> list[list[int]]:
        """Each prompt's token ids."""
        given = self.prompt
        if isinstance(given, str):
            return [tokenizer.encode(given)]
        ids = [part for part in given if isinstance(part, int)]
        if ids:
            return [ids]
        return [
            tokenizer.encode(part) if isinstance(part, str) else part for part in given if not isinstance(part, int)
        ]


class ContentPart(BaseModel):
    """A piece of a message; only text."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A turn of the conversation."""

    model_config = ConfigDict(extra="allow")

    role: Annotated[str, Field(min_length=1, max_length=64)]
    content: str | list[ContentPart] | None = None

    def text(self) -> str:
        """Its text, the parts joined."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class ChatRequest(Common):
    """POST /v1/chat/completions."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Int | None = None
    add_generation_prompt: bool = True

    def prompts(self, tokenizer: MiniTokenizer) -> list[list[int]]:
        """The conversation's token ids."""
        turns = [(message.role, message.text()) for message in self.messages]
        return [tokenizer.encode_chat(turns, self.add_generation_prompt)]


class TokenizeRequest(BaseModel):
    """POST /tokenize: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool = False


class DetokenizeRequest(BaseModel):
    """POST /detokenize."""

    model: str | None = None
    tokens: Tokens


@dataclass(frozen=True)
class Plan:
    """A request that can be honoured: the sequences to generate, in order of their choice index."""

    prompts: list[list[int]]  # each repeated n times
    max_tokens: list[int]
    stream: bool
    usage_at_end: bool
    usage_always: bool
    token_ids: bool


def parse(model: type[Any], body: Any) -> Any:
    """A request model from JSON. Raises `Refused` naming the field."""
    if not isinstance(body, dict):
        raise Refused(f"the body must be a JSON object, not {type(body).__name__}")
    try:
        request = model.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        given = "" if first["type"] == "missing" else f" (got {str(first['input'])[:80]!r})"
        raise Refused(
            f"{where}: {first['msg']}{given}", param=str(first["loc"][0]) if first["loc"] else None
        ) from error
    for name, harmless in _NOT_SUPPORTED.items():
        if name in body and not any(body[name] == value for value in harmless):
            raise Refused(f"{name} is not supported by the embedded lane (got {str(body[name])[:80]!r})", param=name)
    return request


def plan(request: CompletionRequest | ChatRequest, tokenizer: MiniTokenizer, max_model_len: int) -> Plan:
    """Check everything that a request asks for. Raises `Refused`."""
    stops = request.stops()
    if any(not word for word in stops):
        raise Refused("stop cannot contain an empty string.", param="stop")
    prompts = request.prompts(tokenizer)
    if not prompts or len(prompts) * request.n > MAX_SEQUENCES:
        raise Refused(
            f"prompt: between 1 and {MAX_SEQUENCES} sequences a request, got {len(prompts) * request.n}", param="prompt"
        )
    asked, param = request.max_tokens, "max_tokens"
    default: int | None = 16  # as vLLM's completions; a chat goes on to the end of the context
    if isinstance(request, ChatRequest):
        default = None
        if request.max_completion_tokens is not None:
            asked, param = request.max_completion_tokens, "max_completion_tokens"
    if asked is not None and asked < 1:
        raise Refused(f"{param} must be at least 1, got {asked}.", param=param)
    limits = [_limit(prompt, asked, default, tokenizer.size, max_model_len, param) for prompt in prompts]
    if request.min_tokens > min(limits):
        raise Refused(
            f"min_tokens must be at most max_tokens={min(limits)}, got {request.min_tokens}.", param="min_tokens"
        )
    if request.stream_options is not None and not request.stream:
        raise Refused("stream_options can only be given with stream=true.", param="stream_options")
    options = request.stream_options or StreamOptions()
    return Plan(
        prompts=[prompt for prompt in prompts for _ in range(request.n)],
        max_tokens=[limit for limit in limits for _ in range(request.n)],
        stream=bool(request.stream),
        usage_at_end=options.include_usage,
        usage_always=options.include_usage and options.continuous_usage_stats,
        token_ids=bool(request.return_token_ids),
    )


def _limit(prompt: list[int], asked: int | None, default: int | None, vocab: int, context: int, param: str) -> int:
    if not prompt:
        raise Refused("the prompt must hold at least one token", param="prompt")
    wrong = [token for token in prompt if not 0 <= token < vocab]
    if wrong:
        raise Refused(f"token id {wrong[0]} is out of vocabulary (valid: 0 to {vocab - 1})", param="prompt")
    room = context - len(prompt)
    if room < 1 or (asked is not None and asked > room):
        wanted = f"{asked} output tokens" if asked is not None else "output tokens"
        raise Refused(
            f"This model's maximum context length is {context} tokens; the request asks for {wanted} and its prompt "
            f"holds {len(prompt)} input tokens. Shorten the prompt or lower {param}.",
            param="input_tokens" if room < 1 else param,
        )
    return asked if asked is not None else min(default or room, room)
