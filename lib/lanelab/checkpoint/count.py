"""Parameters by role, counted from a model's shape.

For the layouts in `shape.KNOWN` the total equals transformers' own count on the meta device; for
any other decoder it is an estimate and the ledger says so. Projections: q and k have `heads × k_dim`
rows, v and o work on `heads × v_dim`, which differ in MiMo-V2 (192 and 128).
"""

from __future__ import annotations

from lanelab.checkpoint.dtypes import dtype
from lanelab.checkpoint.facts import EXPERTS, Entry
from lanelab.checkpoint.shape import Shape


def parameters(shape: Shape) -> dict[str, int]:
    """Role to parameters; roles of size zero are left out."""
    hidden, norms = shape.hidden, 2 * shape.layers * shape.hidden + shape.hidden
    qkv = o_proj = 0
    for kind in shape.attention:
        rows = kind.heads * kind.k_dim + kind.kv_values()
        qkv += kind.layers * rows * (hidden + (1 if shape.attention_bias else 0))
        qkv += kind.layers * kind.heads if kind.sinks else 0
        o_proj += kind.layers * hidden * kind.heads * kind.v_dim
        norms += kind.layers * 2 * kind.k_dim if shape.qk_norm else 0
    found = {
        EXPERTS: shape.cells * shape.expert_parameters,
        "shared_experts": shape.moe_layers * shape.shared_experts * shape.expert_parameters,
        "router": shape.moe_layers * shape.experts * (hidden + (1 if shape.router_bias else 0)),
        "qkv_proj": qkv,
        "o_proj": o_proj,
        "dense_mlp": shape.dense_layers * 3 * hidden * shape.dense_intermediate,
        "norm": norms,
        "embedding": shape.vocab * hidden,
        "head": 0 if shape.tied_embeddings else shape.vocab * hidden,
    }
    return {role: number for role, number in found.items() if number}


def ledger(shape: Shape, stored: dict[str, str], default: str = "bf16") -> list[Entry]:
    """The byte ledger of a shape; `stored` gives a role's dtype where it is not `default`."""
    entries = []
    for role, number in parameters(shape).items():
        name = stored.get(role, default)
        kind = dtype(name)
        entries.append(
            Entry(
                role=role,
                parameters=number,
                weight_bytes=kind.weight_bytes(number),
                scale_bytes=kind.scales(number),
                dtype=name,
                origin="derived",
            )
        )
    return entries
