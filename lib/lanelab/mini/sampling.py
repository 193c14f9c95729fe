"""From logits to the next token."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sampling:
    """How one request draws its tokens. Temperature 0 is greedy; `top_k` 0 or −1 means all."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None

    def generator(self) -> torch.Generator:
        """The request's own source of randomness, so that its draws do not depend on its neighbours."""
        generator = torch.Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed & (2**63 - 1))
        return generator


def draw(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """One token id from (vocab,) logits."""
    if sampling.temperature < 1e-5:
        return int(logits.argmax())
    logits = logits.double() / sampling.temperature
    if 0 < sampling.top_k < logits.numel():
        smallest = logits.topk(sampling.top_k).values[-1]
        logits = logits.masked_fill(logits < smallest, -torch.inf)
    chances = torch.softmax(logits, dim=-1)
    if sampling.top_p < 1.0:
        ordered, order = chances.sort(descending=True, stable=True)
        # a token stays if the ones before it have not reached top_p; the first one always stays
        dropped = ordered.cumsum(0) - ordered >= sampling.top_p
        dropped[0] = False
        chances = chances.index_fill(0, order[dropped], 0.0)
    return int(torch.multinomial(chances, 1, generator=generator))
