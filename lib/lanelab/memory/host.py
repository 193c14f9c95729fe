"""Host memory: what stays pinned, and the peak while loading.

torch's `pin_memory()` rounds each block up to a power of two, so a 4.5 GiB parameter pins 8; exact
pinning (registering the pages as they are) does not. While a layer is loaded or split, its weights
stand twice.
"""

from __future__ import annotations

from lanelab.checkpoint.facts import Facts
from lanelab.memory.units import GIB, power_of_two


def cold_bytes(facts: Facts, hot: int, scales_in_hbm: bool) -> int:
    """Bytes of cold cells that stay in host memory."""
    size = facts.cell_weight_bytes + (0 if scales_in_hbm else facts.cell_scale_bytes)
    return (facts.cells - hot) * size


def pinned_power_of_two(facts: Facts, hot: int) -> int:
    """Bytes pinned if each layer's cold `w13` and `w2` are one block each, rounded up to a power of two.

    Cold cells are spread evenly over the layers, the remainder over the first ones.
    """
    layers = facts.shape.moe_layers
    if not layers:
        return 0
    least, more = divmod(facts.cells - hot, layers)
    w13 = facts.cell_weight_bytes * 2 // 3
    w2 = facts.cell_weight_bytes - w13
    return sum(
        count * (power_of_two(cells * w13) + power_of_two(cells * w2))
        for cells, count in ((least + 1, more), (least, layers - more))
    )


def transient_gib(facts: Facts) -> float:
    """One MoE layer's weights, which stand twice while it is loaded or split."""
    return facts.cell_weight_bytes * facts.shape.experts / GIB
