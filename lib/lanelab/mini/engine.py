"""The scheduler: continuous batching of streams on one thread.

Each step takes one piece of the oldest unfinished prompt and one token of every running stream, so
that a long prompt slows the others but never stops them. Requests come in and tokens go out through
queues; only the engine's thread touches the model.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from lanelab.mini.kv import DecodePass, KvPool, PrefillPass
from lanelab.mini.sampling import Sampling, draw
from lanelab.mini.text import TextStream

log = logging.getLogger("lanelab.mini.engine")

PREFILL_CHUNK = 256
Reason = Literal["stop", "length", "abort", "error"]


@dataclass(frozen=True)
class Event:
    """A token of a stream and the text to send with it; the reason, if it is the last one.

    `token` is None when none came (abort, error). `stop_reason` is the stop string that ended it.
    """

    token: int | None
    text: str = ""
    reason: Reason | None = None
    stop_reason: str | None = None


@dataclass(eq=False)
class Stream:
    """One sequence: its prompt, its limits, and who hears of its tokens.

    `send` is called on the engine's thread. The stream's times are of the monotonic clock.
    """

    prompt: list[int]
    max_tokens: int
    sampling: Sampling
    send: Callable[[Event], None]
    end_ids: frozenset[int] = frozenset()
    min_tokens: int = 0
    text: TextStream = field(default_factory=lambda: TextStream([]))
    output: list[int] = field(default_factory=list)
    stored: int = 0  # positions whose keys and values are in the pool
    arrived: float = field(default_factory=time.monotonic)
    last_token_at: float | None = None
    aborted: bool = False
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = self.sampling.generator()


class Watcher:
    """Hears what the engine does; the metrics are one."""

    def queue(self, running: int, waiting: int, used: int) -> None:
        """How many streams run and wait, and the positions they hold."""

    def token(self, stream: Stream, now: float) -> None:
        """A token was made."""

    def prompt(self, tokens: int) -> None:
        """A piece of a prompt was read."""

    def finished(self, stream: Stream, reason: Reason, now: float) -> None:
        """A stream ended."""


class Engine:
    """Owns the model and the pool; `submit` and `abort` may be called from any thread."""

    def __init__(
        self,
        model: Any,
        *,
        max_num_seqs: int,
        max_model_len: int,
        texts: list[str],
        may_generate: Iterable[int],
        end_id: int,
        watcher: Watcher | None = None,
    ) -> None:
        self.model = model
        self.max_num_seqs = max_num_seqs
        self.max_model_len = max_model_len
        self.end_id = end_id
        self.texts = texts
        self.pool = KvPool(model.config, max_num_seqs, max_model_len)
        self.watcher = watcher or Watcher()
        self.failure: BaseException | None = None
        self._bias = torch.full((model.config.vocab_size,), -torch.inf)
        self._bias[list(may_generate)] = 0.0
        self._inbox: deque[Stream] = deque()
        self._waiting: deque[Stream] = deque()
        self._prefilling: Stream | None = None
        self._running: list[Stream] = []  # the index is the slot
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; streams under way are aborted."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    @property
    def healthy(self) -> bool:
        """Whether the thread still works."""
        return self.failure is None and self._thread.is_alive()

    def submit(self, stream: Stream) -> None:
        """Queue a stream. Its prompt must not be empty, and prompt and output must fit `max_model_len`."""
        assert stream.prompt and len(stream.prompt) + stream.max_tokens <= self.max_model_len
        with self._wake:
            if self.failure or self._closing:
                stream.send(Event(None, reason="error"))
                return
            self._inbox.append(stream)
            self._wake.notify()

    def abort(self, stream: Stream) -> None:
        """Drop a stream whose client is gone; its slot is free at the next step."""
        stream.aborted = True
        with self._wake:
            self._wake.notify()

    def counts(self) -> tuple[int, int]:
        """(running, waiting) streams."""
        return len(self._running) + (self._prefilling is not None), len(self._waiting) + len(self._inbox)

    def _loop(self) -> None:
        try:
            with torch.inference_mode():
                while self._next():
                    self._step()
        except BaseException as error:
            log.exception("the engine died")
            self.failure = error
        with self._wake:
            left = [*self._running, *self._waiting, *self._inbox]
            self._closing = True
        for stream in [*left, *([self._prefilling] if self._prefilling else [])]:
            stream.send(Event(None, reason="error"))

    def _next(self) -> bool:
        with self._wake:
            while not self._closing and not (self._inbox or self._waiting or self._prefilling or self._running):
                self._wake.wait()
            self._waiting.extend(self._inbox)
            self._inbox.clear()
            return not self._closing

    def _step(self) -> None:
        self._drop_aborted()
        if self._prefilling is None and self._waiting and len(self._running) < self.max_num_seqs:
            self._prefilling = self._waiting.popleft()
        self._tell()
        if self._running:
            self._decode()
        if self._prefilling is not None:
            self._prefill(self._prefilling)
        self._tell()

    def _prefill(self, stream: Stream) -> None:
        slot = len(self._running)
        piece = stream.prompt[stream.stored : stream.stored + PREFILL_CHUNK]
        self.pool.ensure(slot + 1, stream.stored + len(piece))
        view = PrefillPass(self.pool, slot, stream.stored, len(piece))
        logits = self._forward(torch.tensor([piece]), view)  # (1, vocab)
        stream.stored += len(piece)
        self.watcher.prompt(len(piece))
        if stream.stored == len(stream.prompt):
            self._prefilling = None
            self._running.append(stream)
            if last := self._take(stream, logits[0]):
                self._leave(slot)
                self._finish(stream, last)

    def _decode(self) -> None:
        streams = list(self._running)
        lengths = [stream.stored for stream in streams]
        self.pool.ensure(len(streams), max(lengths) + 1)
        view = DecodePass(self.pool, lengths)
        logits = self._forward(torch.tensor([[stream.output[-1]] for stream in streams]), view)  # (n, vocab)
        ended: list[tuple[Stream, Event]] = []
        for row, stream in enumerate(streams):
            stream.stored += 1
            if last := self._take(stream, logits[row]):
                ended.append((stream, last))
        for stream, last in ended:
            self._leave(self._running.index(stream))
            self._finish(stream, last)

    def _forward(self, tokens: torch.Tensor, view: PrefillPass | DecodePass) -> torch.Tensor:
        out = self.model(
            input_ids=tokens,
            attention_mask=view.masks,
            position_ids=view.positions,
            past_key_values=view,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = out.logits[:, -1] + self._bias
        return logits

    def _take(self, stream: Stream, logits: torch.Tensor) -> Event | None:
        """Draw a stream's next token and send it, unless it is the last: then return its event."""
        may_end = bool(stream.end_ids) and len(stream.output) >= stream.min_tokens
        if not may_end:
            logits = logits.clone()
            logits[[self.end_id, *stream.end_ids]] = -torch.inf
        token = draw(logits, stream.sampling, stream.generator)
        now = time.monotonic()
        stream.output.append(token)
        self.watcher.token(stream, now)
        stream.last_token_at = now
        if token in stream.end_ids:
            return Event(token, stream.text.flush(), "stop")
        part = stream.text.push(self.texts[token], watch=len(stream.output) > stream.min_tokens)
        if stream.text.stopped_by is not None:
            return Event(token, part, "stop", stream.text.stopped_by)
        if len(stream.output) >= stream.max_tokens:
            return Event(token, part + stream.text.flush(), "length")
        stream.send(Event(token, part))
        return None

    def _finish(self, stream: Stream, last: Event) -> None:
        """Tell the client last, when the slot is free and the counters are right."""
        assert last.reason is not None
        self.watcher.finished(stream, last.reason, time.monotonic())
        self._tell()
        stream.send(last)

    def _leave(self, slot: int) -> None:
        """Close the gap that a stream leaves in the batch."""
        last = len(self._running) - 1
        if slot != last:
            self.pool.move(last, slot, self._running[last].stored)
            self._running[slot] = self._running[last]
        self._running.pop()
        if self._prefilling is not None and self._prefilling.stored:
            self.pool.move(last + 1, last, self._prefilling.stored)

    def _drop_aborted(self) -> None:
        for stream in [one for one in self._waiting if one.aborted]:
            self._waiting.remove(stream)
            self._finish(stream, Event(None, reason="abort"))
        if self._prefilling is not None and self._prefilling.aborted:
            gone, self._prefilling = self._prefilling, None
            self._finish(gone, Event(None, reason="abort"))
        for stream in [one for one in self._running if one.aborted]:
            self._leave(self._running.index(stream))
            self._finish(stream, Event(None, reason="abort"))

    def _tell(self) -> None:
        running, waiting = self.counts()
        used = sum(stream.stored for stream in self._running)
        self.watcher.queue(running, waiting, used + (self._prefilling.stored if self._prefilling else 0))
