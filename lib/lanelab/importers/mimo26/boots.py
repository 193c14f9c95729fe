"""The boots, failures included, and the budgets of those that served."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from lanelab.importers.mimo26.source import FOLDER, PublishedFolder, frame, local_time
from lanelab.receipts import Environment, Receipt

_LOGS = {"v20": "bootlog-v20-ctrl-C1-30.txt", "v22": "bootlog-v22-hot153-KEEP.txt"}
_OUTCOMES = {"sane": "serving", "slower": "serving", "ran": "serving", "not sane": "garbage"}


def boots(source: PublishedFolder) -> list[Receipt]:
    """One receipt a boot. Boots that the sources only mention keep their nulls."""
    system = source.json("system.json")
    made = []
    for ordinal, boot in enumerate(source.json("boots.json")["boots"]):
        numbers = boot["numbers"] or {}
        log = _log(source, boot["version"])
        row = {
            "version": boot["version"], "ordinal": ordinal, "when_said": boot["when"], "change": boot["change"],
            "load_format": boot["load_format"], "moe_backend": boot["moe_backend"], "patches": boot["patches"],
            "offload_gb": boot["offload_gb"], "hot_gib": boot["hot_gib"], "max_model_len": boot["max_model_len"],
            "outcome": outcome(boot["outcome"]), "outcome_said": boot["outcome"], "reason": boot["reason"],
            "weights_s": numbers.get("weights_s"), "model_load_s": numbers.get("load_s"),
            "model_load_gib": numbers.get("load_gib"),
            "offloaded_gib": numbers.get("offloaded_gib", log.get("offloaded_gib")),
            "kv_gib": numbers.get("kv_gib"), "kv_tokens": numbers.get("kv_tokens"),
            "max_concurrency": log.get("max_concurrency"), "split_s": numbers.get("split_s"),
            "hbm_free_gib": numbers.get("hbm_free_gib"), "host_avail_gib": _last(numbers.get("host_avail_gib")),
            "log": f"results/2026-09-22-hotsplit/receipts/{_LOGS[boot['version']]}" if log else None,
        }  # fmt: skip
        made.append(
            frame(
                "boot",
                boot["version"],
                [row],
                path=FOLDER,
                boot=boot["version"],
                commits=("66bebb58",) if log else (),
                started=_start(boot),
                dated=_day(boot),
                environment=_environment(system) if log else None,
                note=f"as told in: {boot['source']}; the outcome's class is ours, outcome_said is the source's",
            )
        )
    return made


def outcome(said: str | None) -> str | None:
    """The lab's class for a source's words: null stays null, what fits no class is `unknown`."""
    if said is None:
        return None
    if said.startswith("garbage"):
        return "garbage"
    if said.startswith("OOM-killed"):
        return "oom_host_killed"
    return _OUTCOMES.get(said, "unknown")


def budgets(source: PublishedFolder) -> list[Receipt]:
    """What each placement left: one receipt a boot that served with a known placement."""
    facts = source.facts()
    made = []
    for boot in source.json("boots.json")["boots"]:
        numbers = boot["numbers"] or {}
        version = boot["version"]
        stock = version in ("v20", "m-ctrl")
        if not (stock or "cells" in numbers or version == "v21"):
            continue
        cells = numbers.get("cells", [8064, 26496])  # v21 and stock: the budget of v19b, 21 whole layers
        decode = numbers.get("decode")
        if version == "m-hot":
            decode = facts["mopd.mhot_decode"]
        kv_tokens = facts["ident.mhot_kv"] if version == "m-hot" else numbers.get("kv_tokens")
        coverage = numbers.get(
            "coverage_train_pct", facts["ident.mhot"]["coverage_pct"] if version == "m-hot" else None
        )
        row = {
            "placement": "layers" if stock else "two-bank", "hot_gib": boot["hot_gib"],
            "hot_cells": cells[0], "cells": cells[1], "kv_gib": numbers.get("kv_gib"), "kv_tokens": kv_tokens,
            "max_model_len": boot["max_model_len"], "hbm_free_gib": numbers.get("hbm_free_gib"),
            "host_avail_gib": numbers.get("host_avail_gib"),
            "train_coverage": None if coverage is None else round(coverage / 100, 6),
            "decode_tok_s": decode[1] if decode else None,
        }  # fmt: skip
        made.append(
            frame(
                "budget",
                version,
                [row],
                path=FOLDER,
                boot=version,
                started=_start(boot),
                dated=_day(boot),
                note=f"as told in: {boot['source']}; stock keeps 21 whole layers in HBM, as v18's log showed",
            )
        )
    return made


def _last(value: Any) -> Any:
    return value[-1] if isinstance(value, list) else value


def _day(boot: dict[str, Any]) -> str | None:
    found = re.match(r"\d{4}-\d{2}-\d{2}", boot["when"] or "")
    return found.group() if found else None


def _start(boot: dict[str, Any]) -> datetime | None:
    """The boot's start where the source names it as one; a bind or post time is no start."""
    if text := (boot["numbers"] or {}).get("start_utc"):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    if found := re.match(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}) (UTC|CDT) \(start\)", boot["when"] or ""):
        return local_time(found[1]) if found[2] == "CDT" else datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return None


def _log(source: PublishedFolder, version: str) -> dict[str, float]:
    """What the boot's log adds to the table: the engaged offload and the concurrency of its KV pool."""
    if version not in _LOGS:
        return {}
    text = (source.folder / "bootlogs" / _LOGS[version]).read_text(encoding="utf-8")
    offload = re.search(r"Total CPU offloaded parameters: ([\d.]+)", text)
    concurrency = re.search(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x", text)
    found = {"offloaded_gib": offload, "max_concurrency": concurrency}
    return {name: float(match[1]) for name, match in found.items() if match}


def _environment(system: dict[str, Any]) -> Environment:
    return Environment(server={**system["software"], "patch_sha256": system["patch_sha256"]}, gpu=system["gpus"])
