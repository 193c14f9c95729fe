"""What the companion's pictures show: the footprint, and the parity check that found the loader."""

from __future__ import annotations

from typing import Any

from lanelab.importers.mimo26.source import FOLDER, PublishedFolder, day, frame
from lanelab.receipts import Receipt


def footprint(source: PublishedFolder) -> list[Receipt]:
    """The checkpoint's parts as the companion lists them, and the machine as its system file has it."""
    figures = _post(source)
    needs = [
        _part("needs", "routed experts", figures["c.expert_gib"]),
        _part("needs", "attention, norms, dense layer", figures["c.non_expert_gib"]),
        _part("needs", "embedding and head", figures["c.embed_head_gib"]),
        _part("needs", "towers", figures["c.towers_gib"]),
    ]
    system = source.json("system.json")
    has = [
        _part("has", "HBM", system["gpus"][system["compute_gpu_index"]]["memory_visible_gib"]),
        _part("has", "host memory", system["host_memory_gib"]),
    ]
    return [
        frame("footprint", "checkpoint", needs, path=None, note="from the campaign's public companion, undated"),
        frame(
            "footprint",
            "machine",
            has,
            path=f"{FOLDER}/results/2026-09-22-hotsplit/system.json",
            commits=("66bebb58",),
            finished=day(system["collected_utc"].rstrip("Z")),
        ),
    ]


def parity(source: PublishedFolder) -> list[Receipt]:
    """One forward pass by two loaders against a CPU reference, at the points that the post names."""
    found = _post(source)
    streamer, default = "runai_streamer", "safetensors (default)"
    rows = [
        {"ordinal": 0, "point": "QKV output", "layer": 0, "candidate": default, "norm": found["found.qkv_norm_default"],
         "cosine": found["found.qkv_cosine_default"]},
        {"ordinal": 0, "point": "QKV output", "layer": 0, "candidate": streamer, "norm": found["found.qkv_norm_streamer"]},
        {"ordinal": 1, "point": "attention output", "layer": 0, "candidate": streamer,
         "norm": found["found.attn_norm_streamer"]},
        {"ordinal": 2, "point": "MoE output", "layer": None, "candidate": streamer, "norm": found["found.moe_norm_streamer"],
         "norm_reference": found["found.moe_norm_ref"]},
        {"ordinal": 3, "point": "final state", "layer": None, "candidate": streamer,
         "cosine": found["found.final_cosine_streamer"]},
    ]  # fmt: skip
    return [
        frame(
            "parity",
            "streamer",
            rows,
            path=None,
            note="from the campaign's public post, undated; it gives a norm or a cosine for each point, not both. "
            "The layer of the MoE output is not in the figures that were read",
        )
    ]


def _part(side: str, part: str, gib: float) -> dict[str, Any]:
    return {"side": side, "part": part, "gib": gib}


def _post(source: PublishedFolder) -> dict[str, Any]:
    return {fact["key"]: fact["value"] for fact in source.json("post-facts.json")["facts"]}
