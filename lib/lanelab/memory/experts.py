"""Which cells fit where: by cell (hot list) and by layer (an engine's own offload).

A cell is one expert of one layer. A hot budget counts weights only, as the published campaign's
`hotsplit` does; scales are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanelab.checkpoint.facts import Facts
from lanelab.memory.units import GIB, power_of_two


def hot_cells(facts: Facts, hot_gib: float) -> int:
    """Whole cells whose weights fit in `hot_gib`; never more than there are."""
    if not facts.cells or hot_gib <= 0:
        return 0
    return min(facts.cells, int(hot_gib * GIB / facts.cell_weight_bytes + 1e-9))


def layers_equivalent(facts: Facts, cells: int) -> float:
    """Cells as a number of MoE layers."""
    return cells / facts.shape.experts if facts.shape.experts else 0.0


@dataclass(frozen=True)
class Offload:
    """What an engine's offload by budget moves to host memory, in order of layers."""

    bytes: int
    whole_layers: int
    partial: tuple[str, ...]  # parameters of the next layer that went too
    pinned_power_of_two_bytes: int

    @property
    def gib(self) -> float:
        """GiB of weights in host memory."""
        return self.bytes / GIB


def offload_by_budget(facts: Facts, budget_gib: float) -> Offload:
    """Walk the fused expert parameters in order, moving each whole until the budget is passed.

    A layer has two: `w13` (gate and up, two thirds of the weights) and `w2` (down). The last one
    may pass the budget, as vLLM's does: a 320 GiB budget moves 321.75 GiB of MiMo-V2.6-Pro.
    """
    layer_bytes = facts.cell_weight_bytes * facts.shape.experts
    parts = (("w13", layer_bytes * 2 // 3), ("w2", layer_bytes - layer_bytes * 2 // 3))
    moved = pinned = layers = 0
    partial: list[str] = []
    for _ in range(facts.shape.moe_layers):
        partial = []
        for name, size in parts:
            if moved >= budget_gib * GIB:
                return Offload(moved, layers, tuple(partial), pinned)
            moved += size
            pinned += power_of_two(size)
            partial.append(name)
        layers, partial = layers + 1, []
    return Offload(moved, layers, tuple(partial), pinned)


def distinct_experts(experts: int, top_k: int, tokens: float) -> float:
    """Expected distinct experts of one layer that `tokens` tokens read, each picking uniformly.

    E·(1 − (1 − k/E)^T). Real routing is skewed, so fewer are touched; a measured histogram says how many.
    """
    if not experts:
        return 0.0
    if tokens == 1:
        return float(top_k)
    return float(experts * (1.0 - (1.0 - top_k / experts) ** tokens))
