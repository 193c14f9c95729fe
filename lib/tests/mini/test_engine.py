"""The scheduler gives each stream what it would get alone, and what transformers itself computes."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the embedded lane needs the extra `mini`")

from transformers import DynamicCache  # noqa: E402

from lanelab.mini import engine as engine_module  # noqa: E402
from lanelab.mini.engine import Engine, Event, Stream  # noqa: E402
from lanelab.mini.model import Shape, build  # noqa: E402
from lanelab.mini.sampling import Sampling, draw  # noqa: E402
from lanelab.mini.text import TextStream  # noqa: E402

SMALL = Shape(
    vocab=64, layers=7, hidden=32, dense_intermediate=64, experts=8, expert_intermediate=16, heads=4, kv_heads=1,
    key_dim=24, value_dim=16, window=16,
)  # fmt: skip
CONTEXT = 200
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.set_num_threads(1)
    return build(SMALL, 3, CONTEXT)


@pytest.fixture
def engine(model: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(engine_module, "PREFILL_CHUNK", 24)  # so that prompts are read in several pieces
    made = Engine(
        model, max_num_seqs=4, max_model_len=CONTEXT, texts=[chr(64 + n) for n in range(64)],
        may_generate=range(3, 64), end_id=0,
    )  # fmt: skip
    made.start()
    yield made
    made.close()


class Client:
    def __init__(self, engine: Engine, prompt: list[int], max_tokens: int, **fields: Any) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        fields.setdefault("sampling", GREEDY)
        self.stream = Stream(prompt, max_tokens, send=self.events.put, **fields)
        self.engine = engine
        engine.submit(self.stream)

    def all(self) -> list[Event]:
        found = [self.events.get(timeout=30)]
        while found[-1].reason is None:
            found.append(self.events.get(timeout=30))
        return found

    def tokens(self) -> list[int]:
        return [event.token for event in self.all() if event.token is not None]


def prompt_of(length: int, seed: int) -> list[int]:
    return [random.Random(seed).randrange(3, 64) for _ in range(length)]


def by_transformers(model: Any, prompt: list[int], count: int) -> list[int]:
    """Greedy tokens by the library's own masks, cache and attention, without any of ours."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            cache, new, made = DynamicCache(config=model.config), prompt, []
            for _ in range(count):
                logits = model(input_ids=torch.tensor([new]), past_key_values=cache, use_cache=True).logits[0, -1]
                logits[:3] = -torch.inf
                made.append(int(logits.argmax()))
                new = [made[-1]]
        return made
    finally:
        model.set_attn_implementation(before)


@pytest.mark.parametrize("length", [1, 16, 17, 25, 61])
def test_tokens_are_those_of_transformers(engine: Engine, model: Any, length: int) -> None:
    """Across the window's edge, the ring's first turn, and prompts of one and several pieces."""
    prompt = prompt_of(length, length)
    assert Client(engine, prompt, 24).tokens() == by_transformers(model, prompt, 24)


def test_batched_streams_get_what_they_would_get_alone(engine: Engine) -> None:
    """More streams than slots, of different lengths, so that slots are left, moved and taken again."""
    wanted = [(prompt_of(5 + 13 * n, n), 3 + 4 * ((n * 5) % 7)) for n in range(8)]
    alone = [Client(engine, prompt, count).tokens() for prompt, count in wanted]
    clients = [Client(engine, prompt, count) for prompt, count in wanted]
    assert [client.tokens() for client in clients] == alone
    assert [len(tokens) for tokens in alone] == [count for _, count in wanted]
    assert engine.counts() == (0, 0)


def test_a_seed_decides_the_draws_whoever_shares_the_batch(engine: Engine) -> None:
    def drawn(seed: int) -> list[int]:
        return Client(engine, [5, 6, 7], 24, sampling=Sampling(1.0, seed=seed)).tokens()

    first = drawn(11)
    noise = [Client(engine, prompt_of(30, n), 30, sampling=Sampling(1.0)) for n in range(3)]
    assert drawn(11) == first
    assert drawn(12) != first
    for client in noise:
        client.tokens()


def test_the_same_seed_builds_the_same_model(model: Any) -> None:
    again, other = build(SMALL, 3, CONTEXT), build(SMALL, 4, CONTEXT)
    pairs = dict(model.named_parameters())
    assert all(torch.equal(pairs[name], value) for name, value in again.named_parameters())
    assert not torch.equal(model.lm_head.weight, other.lm_head.weight)


def test_a_gone_client_frees_its_slot(engine: Engine) -> None:
    long = [Client(engine, prompt_of(30, n), 150) for n in range(4)]
    waiting = Client(engine, [9, 8, 7], 5)
    long[0].events.get(timeout=30)
    engine.abort(long[1].stream)
    assert waiting.tokens() == Client(engine, [9, 8, 7], 5).tokens()
    assert long[1].all()[-1].reason == "abort"
    for client in (long[0], long[2], long[3]):
        engine.abort(client.stream)
        assert client.all()[-1].reason in ("abort", "length")
    deadline = time.monotonic() + 10
    while engine.counts() != (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.counts() == (0, 0)


def test_ends_and_least_lengths(engine: Engine, model: Any) -> None:
    """An end token ends a stream, but never before min_tokens, and is not drawn when it is to be ignored."""
    prompt = prompt_of(10, 1)
    free = Client(engine, prompt, 20).tokens()
    end = free[7]
    first_at = free.index(end)
    ended = Client(engine, prompt, 20, end_ids=frozenset({end})).all()
    assert [event.token for event in ended] == free[: first_at + 1]
    assert ended[-1].reason == "stop"
    later = Client(engine, prompt, 20, end_ids=frozenset({end}), min_tokens=12).tokens()
    assert end not in later[:12] and len(later) >= 12


def test_stop_strings_end_a_stream_and_are_not_sent(engine: Engine) -> None:
    prompt = prompt_of(10, 2)
    text = "".join(event.text for event in Client(engine, prompt, 30).all())
    word = text[9:12]
    events = Client(engine, prompt, 30, text=TextStream([word, "no such text"])).all()
    assert "".join(event.text for event in events) == text[: text.index(word)]
    assert (events[-1].reason, events[-1].stop_reason) == ("stop", word)


def test_a_dead_engine_tells_everyone(engine: Engine) -> None:
    client = Client(engine, prompt_of(20, 3), 150)
    client.events.get(timeout=30)

    def broken(*_: Any) -> Any:
        raise RuntimeError("broken on purpose")

    engine._forward = broken  # type: ignore[method-assign]
    assert client.all()[-1].reason == "error"
    assert not engine.healthy
    assert Client(engine, [4], 3).all()[-1].reason == "error"


def test_draws_follow_the_limits() -> None:
    logits = torch.tensor([0.0, 3.0, 2.9, -1.0])
    generator = torch.Generator().manual_seed(0)
    assert {draw(logits, Sampling(1.0, top_k=2), generator) for _ in range(60)} == {1, 2}
    assert {draw(logits, Sampling(1.0, top_p=0.4), generator) for _ in range(30)} == {1}
    assert draw(logits, GREEDY, generator) == 1
    shares = [draw(logits, Sampling(1.0), generator) for _ in range(3000)].count(1) / 3000
    assert shares == pytest.approx(float(torch.softmax(logits, 0)[1]), abs=0.04)
