"""What works at an endpoint: each route is asked, and one request is generated."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from lanelab.lane import wire
from lanelab.lane.model import Endpoint


@dataclass
class CheckResult:
    """`works` has one entry a capability; `why` says what failed. `ok`: it has a model and generates."""

    lane: str
    url: str
    model: str
    engine: str | None
    version: str | None
    works: dict[str, bool] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    generate_s: float | None = None
    generate_tokens: int | None = None

    @property
    def ok(self) -> bool:
        """Whether a workload can run on it."""
        return self.works.get("models", False) and self.works.get("generate", False)

    def data(self) -> dict[str, Any]:
        """All fields, for `--json`."""
        return {**asdict(self), "ok": self.ok}


def check(endpoint: Endpoint, *, timeout_s: float = 60.0) -> CheckResult:
    """Ask every route once; what is missing is said, not raised.

    Health alone proves nothing: a server can be healthy and die on its first request, so `health` is
    asked again after the generation.
    """
    headers = endpoint.headers()
    found = CheckResult(
        lane=endpoint.lane_name,
        url=endpoint.base_url,
        model=endpoint.model,
        engine=endpoint.server.get("engine"),
        version=endpoint.server.get("version"),
    )

    def attempt(name: str, call: Any) -> Any:
        try:
            value = call()
        except wire.NoAnswer as error:
            found.works[name], found.why[name] = False, str(error)
            return None
        found.works[name] = True
        return value

    root = endpoint.root_url
    attempt("models", lambda: wire.served_model(endpoint.base_url, endpoint.model, headers, 5.0))
    begun = time.monotonic()
    answer = attempt(
        "generate", lambda: wire.generate_once(endpoint.base_url, endpoint.model, headers, timeout_s=timeout_s)
    )
    if answer is not None:
        found.generate_s = round(time.monotonic() - begun, 4)
        usage = answer.get("usage")
        tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
        found.generate_tokens = tokens if isinstance(tokens, int) else None
    attempt("health", lambda: _get(f"{root}/health", headers))
    attempt("tokenize", lambda: _tokens(f"{root}/tokenize", endpoint.model, headers))
    attempt("metrics", lambda: _metrics(f"{root}/metrics", headers))
    return found


def _get(url: str, headers: dict[str, str]) -> bytes:
    reply = wire.ask(url, headers=headers)
    if reply.status != 200:
        raise wire.NoAnswer(f"{url} answered HTTP {reply.status}", url=url, status=reply.status)
    return reply.body


def _tokens(url: str, model: str, headers: dict[str, str]) -> list[Any]:
    tokens = wire.ask_json(url, json={"model": model, "prompt": "Hello"}, headers=headers).get("tokens")
    if not isinstance(tokens, list) or not tokens:
        raise wire.NoAnswer(f"{url} answered without tokens", url=url, status=200)
    return tokens


def _metrics(url: str, headers: dict[str, str]) -> bytes:
    body = _get(url, headers)
    if b"# TYPE " not in body:
        raise wire.NoAnswer(f"{url} answered without any Prometheus series", url=url, status=200)
    return body
