"""Prompts of an exact length that no prefix cache has seen.

A prompt begins with a nonce, so that no block of it can come from a cache; then come numbered
sentences that do not repeat. Its length is fitted with the server's own `/tokenize`, never with a
tokenizer of the client, and the usage that the server reports is what a row records. Where a server
has no `/tokenize`, the length is estimated from its usage of earlier prompts and graded so.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Count = Callable[[str], Awaitable[int]]

_OWNERS = ("harbour", "mill", "archive", "workshop", "orchard", "station", "library", "foundry", "quarry", "ferry")
_THINGS = ("valve", "ledger", "lantern", "engine", "barrel", "anchor", "compass", "kettle", "pulley", "turbine")
_STATES = ("copper", "hollow", "rusted", "painted", "borrowed", "sealed", "northern", "spare", "cracked", "polished")
_DEEDS = ("was moved to", "was weighed beside", "fell behind", "was traded for", "is kept under", "was found near")
_FILLERS = (" a", " the", "a", ".", "\n")
_FIT_ROUNDS = 12


@dataclass(frozen=True)
class Prompt:
    """A prompt and how many tokens it has; `by`: `tokenize` (exact), `near` (the closest found), `estimated`."""

    text: str
    tokens: int
    by: str


def words(seed: str) -> Callable[[int], str]:
    """A text of the first n words of an endless, numbered, unrepeating inventory."""
    draw = random.Random(seed)
    made: list[str] = []

    def first(count: int) -> str:
        while len(made) < count:
            number = draw.randrange(10**5)
            made.extend(
                f"Item {number}: the {draw.choice(_STATES)} {draw.choice(_THINGS)} of the {draw.choice(_OWNERS)} "
                f"{draw.choice(_DEEDS)} the {draw.choice(_STATES)} {draw.choice(_THINGS)}.".split()
            )
        return " ".join(made[:count])

    return first


class Maker:
    """Makes prompts for one server. `count` asks it for a text's tokens; None if it cannot tell."""

    def __init__(self, count: Count | None, tokens_per_word: float = 1.6) -> None:
        self._count = count
        self.tokens_per_word = tokens_per_word
        self._filler: str | None = None

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """Take the server's usage of a prompt as the scale of estimates."""
        self.tokens_per_word = max(tokens / max(len(prompt.text.split()), 1), 0.05)

    async def make(self, tokens: int) -> Prompt:
        """A fresh prompt of that many tokens, special tokens of the server's tokenizer included."""
        nonce = secrets.token_hex(8)
        inventory = words(nonce)

        def text_of(count: int) -> str:
            return f"[{nonce}] {inventory(count)}"

        number = max(int(tokens / self.tokens_per_word), 1)
        if self._count is None:
            return Prompt(text_of(number), tokens, "estimated")
        best: Prompt | None = None
        over: int | None = None  # the fewest words known to be too many
        for _ in range(_FIT_ROUNDS):
            text = text_of(number)
            found = await self._count(text)
            if found <= tokens and (best is None or found > best.tokens):
                best = Prompt(text, found, "near")
                best_number = number
            if found > tokens:
                over = min(number, over) if over is not None else number
            self.tokens_per_word = max(found / max(number, 1), 0.05)
            if best and tokens - best.tokens <= 8:
                break
            step = int((tokens - found) / self.tokens_per_word) or (1 if found < tokens else -1)
            number = max(number + step, 1)
            if over is not None and number >= over:
                number = max(over - 1, 1)
            if best and number <= best_number:
                break
        if best is None:  # even the nonce is longer
            return Prompt(text_of(1), await self._count(text_of(1)), "near")
        return await self._filled(best, tokens, self._count)

    async def _filled(self, prompt: Prompt, tokens: int, count: Count) -> Prompt:
        """Fill up to the exact length with a filler that is one token here."""
        missing = tokens - prompt.tokens
        fillers = [self._filler, *_FILLERS] if self._filler else list(_FILLERS)
        for filler in fillers if missing else []:
            text = prompt.text + filler * missing
            if await count(text) == tokens:
                self._filler = filler
                return Prompt(text, tokens, "tokenize")
        return prompt if missing else Prompt(prompt.text, tokens, "tokenize")
