"""The bench: a lane under load, watched from both sides.

One group of requests is sent at one moment. Meanwhile the client watches itself (how late each
request was dispatched, how long its event loop was held up, how much CPU it used), since a client
that is busy measures itself; before and after, the server's counters are read, which prove whether
the figures are cold, warm or not ours alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpcore
import httpx

from lanelab.errors import LabError
from lanelab.lane import Endpoint, metrics
from lanelab.lane.stream import arequest
from lanelab.lane.timeline import StreamResult, need_tokens
from lanelab.lane.transport import client, clock
from lanelab.measure import neighbours
from lanelab.measure.prompts import Maker, Prompt

LEAD_S = 0.005  # between the decision to send and the moment of sending
COUNTED_S = 1.0  # how long the server may take to count what it has finished
_TICK_S = 0.005
# How requests end when a server dies.
GONE = frozenset({"connect_failed", "connection_closed", "connection_reset", "incomplete_stream"})
_UNREACHABLE = (httpx.HTTPError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)

# From the most telling to the plainest: the first that the server takes is used.
FIXED: tuple[dict[str, Any], ...] = (
    {"return_token_ids": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    {},
)


class Refused(LabError):
    """The lane does not answer a plain request. Data: `lane`, `error_kind`."""


class TooLong(LabError):
    """No prompt of the workload fits the lane. Data: `lane`, `max_model_len`."""


@dataclass
class Load:
    """What came of one group of requests."""

    results: list[StreamResult]
    late_s: list[float | None]  # dispatch of each, after the moment it was meant for
    began: float
    loop_lag_max_s: float
    client_cpu_s: float
    others_busy_cores: float | None  # of this machine, by neither lane nor client
    verdict: metrics.Verdict

    @property
    def evidence(self) -> dict[str, Any]:
        """The group's state and what proves it."""
        errors = Counter(result.error_kind for result in self.results if result.error_kind)
        return {
            "state": self.verdict.state,
            **self.verdict.evidence,
            "loop_lag_max_s": self.loop_lag_max_s,
            "client_cpu_s": self.client_cpu_s,
            **({"others_busy_cores": self.others_busy_cores} if self.others_busy_cores is not None else {}),
            **({"errors": dict(errors)} if errors else {}),
        }


@dataclass
class Bench:
    """One lane, ready to be loaded. Made by `bench`."""

    endpoint: Endpoint
    http: httpx.AsyncClient
    api: str = "completions"  # or chat
    timeout_s: float = 600.0
    maker: Maker = field(default_factory=lambda: Maker(None))
    extra: dict[str, Any] = field(default_factory=dict)
    fixed_length: bool = True  # the server takes ignore_eos and min_tokens
    tokenizes: bool = False
    has_metrics: bool = False
    server_pid: int | None = None  # where the lane runs on this machine

    async def prepare(self, prompt_tokens: int) -> None:
        """Find out what the server takes and warm it up; none of these requests is counted."""
        self.tokenizes = await self._tokenizes()
        if self.tokenizes:
            self.maker = Maker(self.count)
        self.has_metrics = await self.figures() is not None
        self.server_pid = neighbours.server_pid(self.endpoint.base_url)
        tried = [(extra, fixed) for fixed in (True, False) for extra in FIXED]
        for extra, fixed in tried:
            self.extra, self.fixed_length = extra, fixed
            prompt = await self.maker.make(prompt_tokens)
            result = await self._send(prompt, 8)
            if result.status == "ok":
                if not self.tokenizes and result.prompt_tokens:
                    self.maker.learn(prompt, result.prompt_tokens)
                return
            if result.error_kind not in {"http_400", "http_422"}:
                break
        raise Refused(
            f"lane {self.endpoint.lane_name!r} fails a plain request: {result.error_kind}: {result.error_message}",
            lane=self.endpoint.lane_name,
            error_kind=result.error_kind,
        )

    async def load(self, prompts: list[Prompt], new_tokens: int) -> Load:
        """Send these prompts at one moment and wait for all of them."""
        before = await self.figures()
        machine_before = neighbours.read(self.server_pid) if self.server_pid else None
        cpu = time.process_time()
        start = clock() + LEAD_S

        async def one(prompt: Prompt) -> StreamResult:
            await asyncio.sleep(max(start - clock(), 0.0))
            return await self._send(prompt, new_tokens)

        async with _watched_loop() as lag:
            results = await asyncio.gather(*(one(prompt) for prompt in prompts))
        cpu = time.process_time() - cpu
        machine_after = neighbours.read(self.server_pid) if self.server_pid else None
        answered = sum(result.status == "ok" for result in results)
        sent = sum(len(result.attempts) for result in results)
        after = await self._figures_after(before, answered)
        return Load(
            results=results,
            late_s=[None if result.sent_at is None else max(result.sent_at - start, 0.0) for result in results],
            began=start,
            loop_lag_max_s=max(lag),
            client_cpu_s=cpu,
            others_busy_cores=neighbours.busy_cores(machine_before, machine_after),
            verdict=metrics.judge(
                metrics.Window(before, after), sent=sent, answered=answered, cached_share=cached_share(results)
            ),
        )

    async def count(self, text: str) -> int:
        """The server's count of a prompt's tokens, as it would see it. Raises `Refused`."""
        asked: dict[str, Any] = {"model": self.endpoint.model}
        if self.api == "chat":
            asked["messages"] = [{"role": "user", "content": text}]
        else:
            asked["prompt"] = text
        try:
            answer = await self.http.post(
                f"{self.endpoint.root_url}/tokenize", json=asked, headers=self.endpoint.headers()
            )
            value = answer.json()
            count = value.get("count", len(value.get("tokens", [])))
            if answer.status_code == 200 and isinstance(count, int) and count > 0:
                return count
            why = f"HTTP {answer.status_code}"
        except (*_UNREACHABLE, ValueError, AttributeError, TypeError) as error:
            why = str(error) or type(error).__name__
        raise Refused(
            f"lane {self.endpoint.lane_name!r} does not count tokens: {why}",
            lane=self.endpoint.lane_name,
            error_kind=why,
        )

    async def figures(self) -> dict[str, float] | None:
        """The server's counters now; None where it has none."""
        try:
            answer = await self.http.get(
                f"{self.endpoint.root_url}/metrics", headers=self.endpoint.headers(), timeout=10.0
            )
        except _UNREACHABLE:
            return None
        return metrics.read(lambda: answer.text) if answer.status_code == 200 else None

    async def alive(self) -> bool:
        """Whether the server still says which models it serves."""
        try:
            answer = await self.http.get(
                f"{self.endpoint.base_url}/models", headers=self.endpoint.headers(), timeout=10.0
            )
        except _UNREACHABLE:
            return False
        return answer.status_code < 500

    def room(self, new_tokens: int) -> int | None:
        """The longest prompt that leaves room for so many new tokens; None if the server does not say."""
        longest = self.endpoint.server.get("max_model_len")
        return longest - new_tokens if isinstance(longest, int) else None

    async def _send(self, prompt: Prompt, new_tokens: int) -> StreamResult:
        extra = dict(self.extra)
        if self.fixed_length:
            extra |= {"ignore_eos": True, "min_tokens": new_tokens}
        result = await arequest(
            self.endpoint.base_url,
            endpoint="chat" if self.api == "chat" else "completions",
            prompt=prompt.text,
            max_tokens=new_tokens,
            model=self.endpoint.model,
            extra={"temperature": 0, **extra},
            headers=self.endpoint.headers(),
            idle_s=self.timeout_s,
            total_s=self.timeout_s,
            http=self.http,
        )
        return need_tokens(result)

    async def _tokenizes(self) -> bool:
        try:
            return await self.count("Hello") > 0
        except Refused:
            return False

    async def _figures_after(self, before: dict[str, float] | None, answered: int) -> dict[str, float] | None:
        """The counters once the server has counted our requests, or after `COUNTED_S`."""
        deadline = clock() + COUNTED_S
        while True:
            after = await self.figures()
            if before is None or after is None or clock() > deadline:
                return after
            counted = after.get("finished", 0.0) - before.get("finished", 0.0) >= answered
            if counted and not after.get("running") and not after.get("waiting"):
                return after
            await asyncio.sleep(0.02)


def cached_share(results: list[StreamResult]) -> float | None:
    """Cached over all prompt tokens, where every answer's usage says how many were cached."""
    answers = [result for result in results if result.status == "ok"]
    if not answers or any(result.cached_prompt_tokens is None or not result.prompt_tokens for result in answers):
        return None
    return sum(result.cached_prompt_tokens or 0 for result in answers) / sum(r.prompt_tokens or 0 for r in answers)


@asynccontextmanager
async def bench(endpoint: Endpoint, *, api: str, timeout_s: float) -> AsyncIterator[Bench]:
    """A bench with its own connections."""
    async with client(idle_s=timeout_s) as http:
        yield Bench(endpoint, http, api=api, timeout_s=timeout_s)


@asynccontextmanager
async def _watched_loop() -> AsyncIterator[list[float]]:
    """How late the event loop runs a task that wants to run every few milliseconds."""
    lag = [0.0]

    async def tick() -> None:
        while True:
            due = clock() + _TICK_S
            await asyncio.sleep(_TICK_S)
            lag.append(max(clock() - due, 0.0))
            if len(lag) > 1000:
                lag[:] = [max(lag)]

    task = asyncio.ensure_future(tick())
    try:
        yield lag
    finally:
        task.cancel()
