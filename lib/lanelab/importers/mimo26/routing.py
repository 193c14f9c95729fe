"""Router picks by cell (three count files) and the published shares of traffic that hot lists serve."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lanelab.importers.mimo26.source import FOLDER, PublishedFolder, frame
from lanelab.receipts import Receipt

CELLS = 69 * 384
STOCK_CELLS = 21 * 384
_FACTS_MD = f"{FOLDER}/results/2026-09-22-hotsplit/facts.md"
_PORTABILITY = f"{FOLDER}/results/2026-09-28-mopd/receipts/portability.json"
# name: (file, boot, commit, path in the source)
COUNTS = {
    "hist-8prompt": ("expert_hist_8prompt", "v18", "6cd315c9", "results/2026-09-22-hotsplit/expert_hist_8prompt.json"),
    "live-mhot": ("live-counts-mhot", "m-hot", "57111f17", "results/2026-09-28-mopd/receipts/live-counts-mhot.json"),
    "live-rlhot": ("live-counts-rlhot", "v23", "afdb4121", "results/2026-09-28-mopd/receipts/live-counts-rlhot.json"),
}


def counts_of(value: dict[str, Any]) -> dict[int, list[int]]:
    """Layer to its counts, from either form of the source."""
    layers = value["live"]["decode"] if "live" in value else {key: item["counts"] for key, item in value.items()}
    return {int(layer): counts for layer, counts in sorted(layers.items(), key=lambda item: int(item[0]))}


def routing_counts(source: PublishedFolder) -> list[Receipt]:
    """One receipt a count file, one row a cell."""
    made = []
    for name, (file, boot, commit, path) in COUNTS.items():
        value = source.json(f"routing/{file}.json")
        rows = [
            {"layer": layer, "expert": expert, "phase": "decode" if "live" in value else "both", "picks": picks}
            for layer, counts in counts_of(value).items()
            for expert, picks in enumerate(counts)
        ]
        meta = value.get("meta", {})
        made.append(
            frame(
                "routing-counts",
                name,
                rows,
                path=f"{FOLDER}/{path}",
                commits=(commit,),
                boot=boot if meta else None,
                started=_moment(meta.get("since")),
                finished=_moment(meta.get("at")),
                dated=None if meta else "2026-09-22",
                parameters={"top_k": 8, "phase": "decode", "padded_slots_included": True, "meta": meta}
                if meta
                else {"top_k": 8, "prompts": 8},
                note="RL weights in the setup of v23, after a later reboot" if name == "live-rlhot" else None,
            )
        )
    return made


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def coverage(source: PublishedFolder) -> list[Receipt]:
    """Published shares: of the first ranking by its held-out windows, and of old lists on other traffic."""
    facts = source.facts()

    def percent(
        key: str,
        ranking: str,
        traffic: str,
        cells: int | None,
        phase: str,
        held_out: bool | None,
        note: str | None = None,
    ) -> dict[str, Any]:
        return {
            "ranking": ranking, "traffic": traffic, "phase": phase, "hot_cells": cells, "cells": CELLS,
            "share": round(facts[key] / 100, 6), "held_out": held_out, "identity": key == "cov.stock", "note": note,
        }  # fmt: skip

    train, held = "agent windows, train part", "agent windows, held-out part"
    windows = [
        percent("cov.stock", "layers", held, STOCK_CELLS, "decode", None, "printed as measured; an identity, 21/69"),
        percent("cov.train", train, held, STOCK_CELLS, "decode", True),
        percent("cov.oracle", held, held, STOCK_CELLS, "decode", False),
        percent("cov.prefill", train, f"{held}, prefill", STOCK_CELLS, "prefill", True),
        percent("cov.release_list", f"{train}, prose mixed in at 0.25", held, STOCK_CELLS, "decode", True),
        percent("cov.mix025_prefill", f"{train}, prefill mixed in at 0.25", held, STOCK_CELLS, "decode", True),
    ]
    shares = [
        percent(f"cov.cells{tenth}", train, held, round(CELLS * tenth / 100), "decode", True, f"{tenth} % of the cells")
        for tenth in (20, 40, 50)
    ]
    pooled = [
        percent(f"hist1.pooled_top{tenth}", "hist-8prompt", "hist-8prompt", int(CELLS * tenth / 100), "both", False)
        for tenth in (10, 20, 30, 50)
    ]
    total = facts["port.K"]

    def portable(key: str, ranking: str, traffic: str, cells: int, note: str | None = None) -> dict[str, Any]:
        return {
            "ranking": ranking, "traffic": traffic, "phase": "decode", "hot_cells": cells, "cells": CELLS,
            "share": facts[key], "held_out": ranking not in (traffic, "layers"),
            "identity": ranking == "layers", "note": note,
        }  # fmt: skip

    old = "mixed ranking of v21 to v23"
    portability = [
        portable("port.stock_share_mopd", "layers", "live-mhot", STOCK_CELLS, "an identity, 21/69"),
        portable("port.share_rlrank_on_mopd", old, "live-mhot", total),
        portable("port.share_oracle_mopd", "live-mhot", "live-mhot", total),
        portable("port.share_rlrank_on_rl", old, "live-rlhot", total),
        portable("port.share_oracle_rl", "live-rlhot", "live-rlhot", total),
    ]
    overlap = [
        {"a": old, "b": "live-mhot", "hot_cells": total, "jaccard": facts["port.jaccard_rlrank_mopd"],
         "pearson": facts["port.pearson_rlrank_mopd"]},
        {"a": old, "b": "live-rlhot", "hot_cells": total, "jaccard": facts["port.jaccard_rlrank_rl"],
         "pearson": facts["port.pearson_rlrank_rl"]},
        {"a": "live-mhot", "b": "live-rlhot", "hot_cells": total, "jaccard": facts["port.jaccard_oracles"]},
    ]  # fmt: skip
    return [
        frame("coverage", "windows", windows + shares, path=_FACTS_MD, commits=("66bebb58",), dated="2026-09-22",
              note="the list mixed with prose is from recipe.yaml (commit 30e83055)"),
        frame("coverage", "hist-8prompt", pooled, path=_FACTS_MD, commits=("66bebb58",), dated="2026-09-22"),
        frame("coverage", "portability", portability, path=_PORTABILITY, commits=("57111f17", "afdb4121"),
              dated="2026-09-28"),
        frame("overlap", "portability", overlap, path=_PORTABILITY, commits=("57111f17", "afdb4121"),
              dated="2026-09-28"),
    ]  # fmt: skip
