"""The KV cache: bytes a token, bytes a request, and the pool an engine prints.

A full-attention layer keeps K and V of every token. A sliding layer keeps its window, and while a
prompt is read in chunks, the chunks in flight too. vLLM cuts both into blocks: layers stand in
groups as large as the smallest kind, each group takes whole blocks, and the pool it prints is

    tokens = floor(blocks / blocks a request × context),
    blocks a request = ceil(context / 16) + G · (ceil((window − 1 + chunks) / 16) + 1)

with G sliding groups. `chunks` is two scheduler batches (2 × max-num-batched-tokens): inferred from
the published campaign, where this formula, and no other tried, gives all six printed pools as whole
blocks; that two batches are in flight is our reading of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanelab.checkpoint.dtypes import dtype
from lanelab.checkpoint.facts import Facts
from lanelab.memory.units import ceil_div

BLOCK_TOKENS = 16
BATCHED_TOKENS = 2048
BATCHES_IN_FLIGHT = 2


@dataclass(frozen=True)
class KvCache:
    """Sizes of one model's KV cache. `slope` is what one more token adds."""

    slope_bytes: int
    sliding_bytes: int  # of one token in all sliding layers
    window: int
    batched_tokens: int
    group_bytes: int | None  # one token in one group of layers; None where layers differ in size

    def sliding_tokens(self, context: int) -> int:
        """Tokens a request keeps in each sliding layer, in whole blocks."""
        if not self.sliding_bytes:
            return 0
        kept = min(self.window - 1 + BATCHES_IN_FLIGHT * self.batched_tokens, context)
        return (ceil_div(kept, BLOCK_TOKENS) + 1) * BLOCK_TOKENS

    def request_bytes(self, context: int) -> int:
        """KV bytes of one request of `context` tokens."""
        full = ceil_div(context, BLOCK_TOKENS) * BLOCK_TOKENS * self.slope_bytes
        return full + self.sliding_tokens(context) * self.sliding_bytes

    def pool_tokens(self, pool_bytes: float, context: int) -> int:
        """Tokens that a pool holds in requests of `context` tokens, as the engine counts them."""
        if pool_bytes <= 0 or context <= 0:
            return 0
        request = self.request_bytes(context)
        if not request:
            return 0
        if self.group_bytes:
            block = self.group_bytes * BLOCK_TOKENS
            return int(pool_bytes // block) * context // (request // block)
        return int(pool_bytes / request * context)

    def context_max(self, pool_bytes: float, streams: int, limit: int) -> int:
        """The longest context that `streams` requests can have together in a pool; at most `limit`."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if streams * self.request_bytes(middle) <= pool_bytes:
                low = middle
            else:
                high = middle - 1
        return low

    def read_bytes(self, depth: int) -> int:
        """Bytes that attention reads for one token at a depth of `depth` tokens."""
        return depth * self.slope_bytes + min(depth, self.window) * self.sliding_bytes


def kv_cache(facts: Facts, kv_dtype: str | None = None, batched_tokens: int = BATCHED_TOKENS) -> KvCache:
    """The KV cache of a model; `kv_dtype` overrides what the checkpoint implies."""
    bits = dtype(kv_dtype or facts.kv_dtype).bits
    sizes = {"full": 0, "sliding": 0}
    layers = {"full": 0, "sliding": 0}
    per_layer = set()
    window = 0
    for kind in facts.shape.attention:
        token_bytes = kind.kv_values() * bits // 8
        sizes[kind.kind] += kind.layers * token_bytes
        layers[kind.kind] += kind.layers
        per_layer.add(token_bytes)
        window = max(window, kind.window or 0)
    group = None
    if len(per_layer) == 1:
        smallest = min(count for count in layers.values() if count)
        even = all(count % smallest == 0 for count in layers.values())
        group = smallest * per_layer.pop() if even else None
    if layers["full"] == 0:
        group = None
    if group and group != sizes["full"]:
        group = None
    return KvCache(sizes["full"], sizes["sliding"], window, batched_tokens, group)
