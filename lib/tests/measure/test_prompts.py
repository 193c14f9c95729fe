"""Prompts have the asked length under tokenizers of several kinds."""

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanelab.measure.prompts import Maker

TOKENIZERS = {
    "words": lambda text: len(re.findall(r"\w+|[^\w\s]", text)) + 1,
    "bytes": lambda text: len(text.encode()),
    "pieces": lambda text: len(re.findall(r" ?[a-z]{1,4}|[0-9]|.|\n", text)),
    "pairs": lambda text: (len(text) + 1) // 2,
}


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=15, deadline=None)
@given(tokens=st.integers(64, 3000))
def test_a_prompt_has_exactly_the_tokens_asked_for(name: str, tokens: int) -> None:
    calls = 0

    async def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return TOKENIZERS[name](text)

    prompt = asyncio.run(Maker(count).make(tokens))
    assert prompt.tokens == TOKENIZERS[name](prompt.text)
    assert prompt.by in {"tokenize", "near"}
    assert tokens - prompt.tokens <= (0 if name != "pairs" else 8)
    assert calls <= 18


def test_a_prompt_shorter_than_its_nonce_says_so() -> None:
    async def count(text: str) -> int:
        return len(text)

    prompt = asyncio.run(Maker(count).make(8))
    assert prompt.by == "near" and prompt.tokens == len(prompt.text)


def test_estimates_follow_the_servers_usage() -> None:
    async def run() -> int:
        maker = Maker(None)
        first = await maker.make(200)
        assert first.by == "estimated"
        maker.learn(first, 3 * len(first.text.split()))
        return len((await maker.make(300)).text.split())

    assert asyncio.run(run()) == pytest.approx(100, abs=2)
