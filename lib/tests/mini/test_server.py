"""The wire: what vLLM's clients expect, and what hostile ones get."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from lanelab.mini.__main__ import main as mini_main

PROMPT = "The router looks at the hidden state, and"


@pytest.fixture
def http(mini_url: str) -> httpx.Client:
    return httpx.Client(base_url=mini_url.removesuffix("/v1"), timeout=60, trust_env=False)


def post(http: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def events(http: httpx.Client, path: str, **body: Any) -> list[dict[str, Any]]:
    with http.stream("POST", path, json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def series(http: httpx.Client) -> dict[str, float]:
    lines = http.get("/metrics").text.splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def total(found: dict[str, float], name: str) -> float:
    return sum(value for key, value in found.items() if key.split("{")[0] == name)


def test_streams_say_what_whole_answers_say(http: httpx.Client) -> None:
    for path, ask in (
        ("/v1/completions", {"prompt": PROMPT}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}]}),
    ):
        body = {**ask, "max_tokens": 12, "temperature": 0, "return_token_ids": True}
        whole = post(http, path, **body)
        parts = events(http, path, **body, stream_options={"include_usage": True, "continuous_usage_stats": True})
        choice = whole["choices"][0]
        text = choice["text"] if "text" in choice else choice["message"]["content"]
        pieces = [part["choices"][0] for part in parts if part["choices"]]
        assert "".join(p["text"] if "text" in p else p["delta"]["content"] for p in pieces) == text
        assert [token for p in pieces for token in p.get("token_ids", [])] == choice["token_ids"]
        assert pieces[-1]["finish_reason"] == choice["finish_reason"] == "length"
        assert [p["finish_reason"] for p in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert parts[-1]["choices"] == [] and parts[-1]["usage"] == whole["usage"]
        running = [part["usage"]["completion_tokens"] for part in parts[:-1] if part.get("usage")]
        assert running == list(range(1, 13))


def test_usage_is_what_the_tokenizer_counts(http: httpx.Client) -> None:
    for ask, path in (
        ({"prompt": "Zählen: 1, 2, 3 — 🦉"}, "/v1/completions"),
        (
            {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "häh?"}]},
            "/v1/chat/completions",
        ),
    ):
        counted = post(http, "/tokenize", **ask)
        answer = post(http, path, **ask, max_tokens=3, ignore_eos=True, return_token_ids=True)
        assert answer["usage"]["prompt_tokens"] == counted["count"] == len(counted["tokens"])
        assert answer["choices"][0]["prompt_token_ids"] == counted["tokens"]
        assert answer["usage"]["completion_tokens"] == 3
    assert post(http, "/detokenize", tokens=post(http, "/tokenize", prompt="häh? 🦉")["tokens"])["prompt"] == "häh? 🦉"


def test_token_ids_as_prompt_and_several_prompts(http: httpx.Client) -> None:
    ids = post(http, "/tokenize", prompt=PROMPT)["tokens"]
    common = {"max_tokens": 6, "temperature": 0}
    by_text = post(http, "/v1/completions", prompt=PROMPT, **common)["choices"][0]["text"]
    several = post(http, "/v1/completions", prompt=[ids, ids[:3]], n=2, **common)
    texts = [choice["text"] for choice in several["choices"]]
    assert texts[:2] == [by_text, by_text] and texts[2] == texts[3]
    assert [choice["index"] for choice in several["choices"]] == [0, 1, 2, 3]
    assert several["usage"]["prompt_tokens"] == len(ids) + 3
    assert several["usage"]["completion_tokens"] == 24


def test_a_seed_repeats_itself(http: httpx.Client) -> None:
    def text(seed: int) -> str:
        answer = post(http, "/v1/completions", prompt=PROMPT, max_tokens=16, seed=seed, ignore_eos=True)
        return str(answer["choices"][0]["text"])

    assert text(5) == text(5) != text(6)


def test_lengths_and_stops(http: httpx.Client) -> None:
    common = {"prompt": PROMPT, "temperature": 0, "max_tokens": 24, "ignore_eos": True}
    text = post(http, "/v1/completions", **common)["choices"][0]["text"]
    word = text[8:10]
    stopped = post(http, "/v1/completions", **common, stop=[word])["choices"][0]
    assert stopped["text"] == text[: text.index(word)]
    assert (stopped["finish_reason"], stopped["stop_reason"]) == ("stop", word)
    assert post(http, "/v1/completions", prompt=PROMPT)["usage"]["completion_tokens"] <= 16
    least = post(http, "/v1/completions", prompt=PROMPT, max_tokens=30, min_tokens=30, seed=1)
    assert least["usage"]["completion_tokens"] == 30


HOSTILE: list[tuple[str, dict[str, Any], int, str]] = [
    ("/v1/completions", {}, 400, "prompt"),
    ("/v1/completions", {"prompt": ""}, 400, "at least one token"),
    ("/v1/completions", {"prompt": []}, 400, "prompt"),
    ("/v1/completions", {"prompt": [1, "a"]}, 400, "prompt"),
    ("/v1/completions", {"prompt": [[]]}, 400, "at least one token"),
    ("/v1/completions", {"prompt": [99999]}, 400, "99999"),
    ("/v1/completions", {"prompt": [-1]}, 400, "-1"),
    ("/v1/completions", {"prompt": [True, False]}, 400, "prompt"),
    ("/v1/completions", {"prompt": "a" * 5000}, 400, "maximum context length is 2048"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 2048}, 400, "2048 output tokens"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 0}, 400, "max_tokens must be at least 1"),
    ("/v1/completions", {"prompt": "a", "max_tokens": "3"}, 400, "max_tokens"),
    ("/v1/completions", {"prompt": "a", "max_tokens": True}, 400, "max_tokens"),
    ("/v1/completions", {"prompt": "a", "temperature": "1"}, 400, "temperature"),
    ("/v1/completions", {"prompt": "a", "n": True}, 400, "n: "),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "user"}], "max_completion_tokens": "3"},
        400,
        "max_completion_tokens",
    ),
    ("/v1/completions", {"prompt": "a", "max_tokens": 2, "min_tokens": 3}, 400, "min_tokens"),
    ("/v1/completions", {"prompt": "a", "temperature": -1}, 400, "temperature"),
    ("/v1/completions", {"prompt": "a", "top_p": 0}, 400, "top_p"),
    ("/v1/completions", {"prompt": "a", "n": 100000}, 400, "256"),
    ("/v1/completions", {"prompt": "a", "stop": [""]}, 400, "empty string"),
    ("/v1/completions", {"prompt": "a", "echo": True}, 400, "echo"),
    ("/v1/completions", {"prompt": "a", "logprobs": 5}, 400, "logprobs"),
    ("/v1/completions", {"prompt": "a", "seed": 2**80}, 400, "seed"),
    ("/v1/completions", {"prompt": "a", "stream_options": {"include_usage": True}}, 400, "stream"),
    ("/v1/completions", {"prompt": "a", "model": "other"}, 404, "`other` does not exist"),
    ("/v1/chat/completions", {"messages": []}, 400, "messages"),
    ("/v1/chat/completions", {"messages": [{"content": "x"}]}, 400, "role"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages"),
    ("/tokenize", {}, 400, "prompt or messages"),
    ("/detokenize", {"tokens": [10**9]}, 400, "out of vocabulary"),
]


@pytest.mark.parametrize(("path", "body", "status", "says"), HOSTILE, ids=lambda part: str(part)[:40])
def test_wrong_requests_are_refused_by_name(
    http: httpx.Client, path: str, body: dict[str, Any], status: int, says: str
) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert says in error["message"] and error["code"] == status
    assert error["type"] == ("NotFoundError" if status == 404 else "BadRequestError")


def test_bodies_that_are_no_json(http: httpx.Client) -> None:
    for content in (b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"prompt": "a", "temperature": NaN}'):
        answer = http.post("/v1/completions", content=content)
        assert answer.status_code == 400 and answer.json()["error"]["message"], content[:20]
    assert http.get("/v1/completions").status_code == 405
    assert http.get("/nothing").json()["error"]["code"] == 404
    surrogate = b'{"prompt": "\\ud800", "max_tokens": 1}'
    assert http.post("/v1/completions", content=surrogate).status_code == 200


def test_metrics_count_under_the_names_of_vllm(http: httpx.Client) -> None:
    before = series(http)
    answer = post(http, "/v1/completions", prompt=PROMPT, max_tokens=7, ignore_eos=True)
    after = series(http)

    def grown(name: str) -> float:
        return total(after, name) - total(before, name)

    assert grown("vllm:prompt_tokens_total") == answer["usage"]["prompt_tokens"]
    assert grown("vllm:generation_tokens_total") == 7
    assert grown("vllm:request_success_total") == 1
    assert grown("vllm:time_to_first_token_seconds_count") == 1
    assert grown("vllm:inter_token_latency_seconds_count") == 6
    assert grown("vllm:e2e_request_latency_seconds_count") == 1
    assert after['vllm:num_requests_running{engine="0",model_name="mini"}'] == 0


def test_disconnected_clients_are_freed(http: httpx.Client) -> None:
    """One hangs up in mid-stream, one while it waits for a whole answer."""
    aborted = 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="mini"}'
    before = series(http)[aborted]
    body = {"prompt": PROMPT, "max_tokens": 1900, "ignore_eos": True}
    with http.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
        next(answer.iter_lines())
    with pytest.raises(httpx.ReadTimeout):
        http.post("/v1/completions", json=body, timeout=0.3)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        found = series(http)
        if found[aborted] == before + 2:
            break
        time.sleep(0.05)
    assert found[aborted] == before + 2
    assert total(found, "vllm:num_requests_running") == 0


def test_many_streams_at_once_get_their_own_tokens(mini_url: str) -> None:
    """More than the engine has slots for; each gets what it got alone."""

    async def ask(client: httpx.AsyncClient, number: int) -> str:
        body = {"prompt": f"Stream number {number} says", "max_tokens": 6, "temperature": 0, "ignore_eos": True}
        answer = await client.post(f"{mini_url}/completions", json=body)
        return str(answer.json()["choices"][0]["text"])

    async def play() -> tuple[list[str], list[str]]:
        async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
            together = await asyncio.gather(*(ask(client, number) for number in range(20)))
            alone = [await ask(client, number) for number in range(0, 20, 6)]
        return list(together), alone

    together, alone = asyncio.run(play())
    assert together[::6] == alone


def test_the_official_client_is_served(mini_url: str) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=mini_url, api_key="none", http_client=httpx.Client(trust_env=False)) as client:
        assert [model.id for model in client.models.list()] == ["mini"]
        chat = client.chat.completions.create(
            model="mini", messages=[{"role": "user", "content": "hi"}], max_tokens=5, temperature=0
        )
        parts = client.chat.completions.create(
            model="mini", messages=[{"role": "user", "content": "hi"}], max_tokens=5, temperature=0, stream=True,
            stream_options={"include_usage": True},
        )  # fmt: skip
        collected = list(parts)
        text = "".join(part.choices[0].delta.content or "" for part in collected if part.choices)
        assert text == chat.choices[0].message.content
        assert collected[-1].usage == chat.usage
        with pytest.raises(openai.BadRequestError, match="max_tokens"):
            client.completions.create(model="mini", prompt="a", max_tokens=0)
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="gpt", prompt="a")


def test_the_log_says_early_what_it_does(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def serves(*_: Any, **__: Any) -> None:
        return

    monkeypatch.setattr("uvicorn.run", serves)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with caplog.at_level("INFO", logger="lanelab.mini"):
        result = CliRunner().invoke(mini_main, ["serve", "--max-model-len", "64", "--max-num-seqs", "1"])
    assert result.exit_code == 0, result.output
    said = [record.getMessage() for record in caplog.records]
    steps = ["importing torch and transformers", "Initializing", "building the model", "Drawing weights"]
    places = [next(at for at, line in enumerate(said) if line.startswith(step)) for step in steps]
    assert places == sorted(places)
