"""Keys and values of all streams, and the two ways in which a pass reads and writes them.

A slot is one stream's place in the batch. Full-attention layers keep every position; sliding layers
keep a ring of the last `window` positions, since older ones can never be seen again. Rotary
positions are in the keys already, so the order in a ring does not matter, only which entries count.
The streams that decode fill slots 0 … n−1 without gaps: a pass reads them as views, without copies.
"""

from __future__ import annotations

from typing import Any

import torch

MASKED = torch.finfo(torch.float32).min
_FIRST_CAPACITY = 256


class KvPool:
    """Storage that grows with use, up to `max_slots` × `max_len` positions."""

    def __init__(self, config: Any, max_slots: int, max_len: int) -> None:
        self.window = int(config.sliding_window)
        self.max_slots, self.max_len = max_slots, max_len
        self.sliding = [kind == "sliding_attention" for kind in config.layer_types]
        self._heads = [config.num_key_value_heads * (2 if sliding else 1) for sliding in self.sliding]
        self._widths = (config.head_dim, config.v_head_dim)
        self._slots, self._capacity = 1, min(_FIRST_CAPACITY, max_len)
        # one pair a layer: keys (slots, kv_heads, positions, key_dim), values (…, value_dim)
        self.layers = [self._empty(layer) for layer in range(len(self.sliding))]

    def _empty(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        positions = self.window if self.sliding[layer] else self._capacity
        key, value = (torch.zeros(self._slots, self._heads[layer], positions, width) for width in self._widths)
        return key, value

    def ensure(self, slots: int, positions: int) -> None:
        """Make room for this many slots and positions, by doubling."""
        new_slots, new_capacity = self._slots, self._capacity
        while new_slots < slots:
            new_slots *= 2
        while new_capacity < positions:
            new_capacity *= 2
        new_slots, new_capacity = min(new_slots, self.max_slots), min(new_capacity, self.max_len)
        if (new_slots, new_capacity) == (self._slots, self._capacity):
            return
        self._slots, self._capacity = new_slots, new_capacity
        for layer, old in enumerate(self.layers):
            new = self._empty(layer)
            for target, source in zip(new, old, strict=True):
                target[: source.shape[0], :, : source.shape[2]] = source
            self.layers[layer] = new

    def move(self, source: int, target: int, length: int) -> None:
        """Put one slot's contents into another."""
        for layer, (key, value) in enumerate(self.layers):
            filled = min(length, self.window) if self.sliding[layer] else length
            key[target, :, :filled] = key[source, :, :filled]
            value[target, :, :filled] = value[source, :, :filled]

    def bytes(self) -> int:
        """Bytes allocated now."""
        return sum(key.nbytes + value.nbytes for key, value in self.layers)


class PrefillPass:
    """One stream's next `count` prompt tokens, in `slot`, from position `start` on.

    Stands where transformers expects its cache: each layer hands over its new keys and values and
    gets back all that its queries may see.
    """

    def __init__(self, pool: KvPool, slot: int, start: int, count: int) -> None:
        self.pool, self.slot, self.start, self.count = pool, slot, start, count
        queries = torch.arange(start, start + count)
        self.positions = queries.unsqueeze(0)  # (1, count)
        first_seen = max(0, start - pool.window + 1)
        self._earlier = torch.arange(first_seen, start) % pool.window
        windowed = torch.arange(first_seen, start + count)
        everything = torch.arange(start + count)
        self.masks = {
            "full_attention": _mask(everything[None, :] <= queries[:, None]),
            "sliding_attention": _mask(
                (windowed[None, :] <= queries[:, None]) & (windowed[None, :] > queries[:, None] - pool.window)
            ),
        }

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store (1, kv_heads, count, dim) and return what this layer's queries see."""
        slot, start, end = self.slot, self.start, self.start + self.count
        stores = self.pool.layers[layer]
        if not self.pool.sliding[layer]:
            for store, new in zip(stores, (key, value), strict=True):
                store[slot, :, start:end] = new[0]
            return stores[0][slot : slot + 1, :, :end], stores[1][slot : slot + 1, :, :end]
        kept = min(self.count, self.pool.window)
        ring = torch.arange(end - kept, end) % self.pool.window
        seen = []
        for store, new in zip(stores, (key, value), strict=True):
            seen.append(torch.cat([store[slot, :, self._earlier][None], new], dim=2))
            store[slot, :, ring] = new[0, :, -kept:]
        return seen[0], seen[1]


class DecodePass:
    """One token for each of the streams in slots 0 … n−1; `lengths` counts the positions already stored."""

    def __init__(self, pool: KvPool, lengths: list[int]) -> None:
        self.pool = pool
        self._at = torch.tensor(lengths)
        self._rows = torch.arange(len(lengths))
        self.positions = self._at.unsqueeze(1)  # (n, 1)
        self._longest = max(lengths) + 1
        self._ring_view = min(self._longest, pool.window)
        self.masks = {
            "full_attention": _mask((torch.arange(self._longest)[None, :] <= self._at[:, None])[:, None, :]),
            # a ring that has gone round holds exactly the window
            "sliding_attention": _mask((torch.arange(self._ring_view)[None, :] <= self._at[:, None])[:, None, :]),
        }

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store (n, kv_heads, 1, dim) and return views of what this layer's queries see."""
        count = len(self._rows)
        sliding = self.pool.sliding[layer]
        where = self._at % self.pool.window if sliding else self._at
        shown = self._ring_view if sliding else self._longest
        stores = self.pool.layers[layer]
        for store, new in zip(stores, (key, value), strict=True):
            store[self._rows, :, where] = new[:, :, 0]
        return stores[0][:count, :, :shown], stores[1][:count, :, :shown]


def _mask(allowed: torch.Tensor) -> torch.Tensor:
    """(queries, keys) or (batch, queries, keys) of booleans to what is added to the scores."""
    additive = torch.zeros(allowed.shape).masked_fill_(~allowed, MASKED)
    return additive[:, None] if allowed.dim() == 3 else additive[None, None]
