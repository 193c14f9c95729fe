"""Short questions to a server: is it healthy, which model does it serve, does it generate.

A measured request goes through `lane.stream`; this is for finding out what answers at all. What a
server sends is material, not truth: anything that is not the JSON that was asked for is a `NoAnswer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from lanelab.errors import LabError

MAX_BODY_BYTES = 8_000_000


class NoAnswer(LabError):
    """The server gave no usable answer. Data: `url`, `status` (None if there was no HTTP answer)."""


@dataclass(frozen=True)
class Reply:
    """An answer's status and body."""

    status: int
    body: bytes


def ask(
    url: str,
    *,
    json: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    timeout_s: float = 5.0,
) -> Reply:
    """GET, or POST if there is a body. Redirects are not followed (a key could leak). Raises `NoAnswer`."""
    try:
        with (
            # a proxy of the environment must not stand between us and a server on this machine
            httpx.Client(timeout=timeout_s, trust_env=not _is_loopback(url)) as client,
            client.stream("GET" if json is None else "POST", url, json=json, headers=headers) as response,
        ):
            parts, size = [], 0
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise NoAnswer(f"{url} answered with over {MAX_BODY_BYTES} bytes", url=url, status=None)
                parts.append(chunk)
            return Reply(response.status_code, b"".join(parts))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoAnswer(f"{url} does not answer: {_short(error)}", url=url, status=None) from error


def ask_json(
    url: str, *, json: dict[str, Any] | None = None, headers: dict[str, str] | None = None, timeout_s: float = 5.0
) -> dict[str, Any]:
    """A JSON object from a 200 answer. Raises `NoAnswer`."""
    reply = ask(url, json=json, headers=headers, timeout_s=timeout_s)
    if reply.status != 200:
        raise NoAnswer(f"{url} answered HTTP {reply.status}{_message_of(reply.body)}", url=url, status=reply.status)
    value = _parse(reply.body)
    if not isinstance(value, dict):
        raise NoAnswer(f"{url} answered with something that is not a JSON object", url=url, status=200)
    return value


def served_model(base_url: str, wanted: str | None, headers: dict[str, str], timeout_s: float) -> dict[str, Any]:
    """The entry of `/v1/models` that is wanted, or its first. Raises `NoAnswer`."""
    data = ask_json(f"{base_url}/models", headers=headers, timeout_s=timeout_s).get("data")
    found = data if isinstance(data, list) else []
    entries = [item for item in found if isinstance(item, dict) and isinstance(item.get("id"), str)]
    if not entries:
        raise NoAnswer(f"{base_url}/models names no model", url=base_url, status=200)
    if wanted is None:
        return entries[0]
    for entry in entries:
        if entry["id"] == wanted:
            return entry
    names = ", ".join(entry["id"] for entry in entries)
    raise NoAnswer(f"{base_url} does not serve model {wanted!r} (valid: {names})", url=base_url, status=200)


def generate_once(base_url: str, model: str, headers: dict[str, str], timeout_s: float) -> dict[str, Any]:
    """Up to four tokens, by completions or, where there is no such route, by chat. Raises `NoAnswer`.

    A healthy server can die on its first request, so nothing counts as up before this.
    """
    common: dict[str, Any] = {"model": model, "max_tokens": 4, "temperature": 0}
    try:
        value = ask_json(
            f"{base_url}/completions", json={**common, "prompt": "Hello"}, headers=headers, timeout_s=timeout_s
        )
    except NoAnswer as error:
        if error.data["status"] not in (404, 405):
            raise
        messages = [{"role": "user", "content": "Hello"}]
        value = ask_json(
            f"{base_url}/chat/completions",
            json={**common, "messages": messages},
            headers=headers,
            timeout_s=timeout_s,
        )
    if not isinstance(value.get("choices"), list) or not value["choices"]:
        raise NoAnswer(f"{base_url} generated no choice", url=base_url, status=200)
    return value


def _is_loopback(url: str) -> bool:
    host = httpx.URL(url).host
    return host in ("localhost", "::1") or host.startswith("127.")


def _parse(body: bytes) -> Any:
    import json

    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _message_of(body: bytes) -> str:
    value = _parse(body)
    if isinstance(value, dict):
        error = value.get("error", value)
        message = error.get("message") if isinstance(error, dict) else error
        if isinstance(message, str) and message:
            return f": {message[:200]}"
    return ""


def _short(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
