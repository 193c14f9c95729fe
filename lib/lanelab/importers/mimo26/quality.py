"""The quality gate as published: teacher-forced flips, greedy divergence, function-call and flood suites; and the profile."""

from __future__ import annotations

from typing import Any

from lanelab.importers.mimo26.source import FOLDER, PublishedFolder, frame
from lanelab.receipts import Receipt

_PROMOTION = f"{FOLDER}/results/2026-09-24-promotion/receipts"
_MOPD = f"{FOLDER}/results/2026-09-28-mopd/receipts"
_EARLY: dict[str, Any] = {"commits": ("b929f9f5", "bb95d4f1"), "dated": "2026-09-24"}
_LATE: dict[str, Any] = {"commits": ("57111f17", "afdb4121"), "dated": "2026-09-28"}
_SERVERS = {
    "ctrl": ("RL", "layers"), "v23": ("RL", "two-bank"), "rlhot": ("RL", "two-bank"),
    "mctrl": ("MOPD", "layers"), "mhot": ("MOPD", "two-bank"),
}  # fmt: skip


def teacher_forced(source: PublishedFolder) -> list[Receipt]:
    """Four comparisons; one of them is the floor: the control against its own reboot."""
    facts = source.facts()
    positions = facts["prom.tf_positions"]

    def full(key: str, candidate: str, floor: bool) -> dict[str, Any]:
        value = facts[key]
        return {
            "comparison": key, "reference": "v20 control", "candidate": candidate, "floor": floor,
            "positions": positions, "flips": value["flips"], "flip_share": value["rate"],
            "ppl_reference": value["ppl_ref"], "ppl_candidate": value["ppl_cand"], "dlogprob_mean": value["mean"],
            "dlogprob_p50": value["p50"], "dlogprob_p99": value["p99"], "dlogprob_max": value["max"],
        }  # fmt: skip

    def printed(key: str, reference: str, candidate: str) -> dict[str, Any]:
        value = facts[key]
        return {
            "comparison": key, "reference": reference, "candidate": candidate, "floor": False,
            "positions": value["flips"][1], "flips": value["flips"][0],
            "flip_share": round(value["flip_pct"] / 100, 8),
            "ppl_reference": value["ppl"][0], "ppl_candidate": value["ppl"][1], "dlogprob_mean": value["mean"],
            "dlogprob_p50": value["p50"], "dlogprob_p99": value["p99"], "dlogprob_max": value["max"],
        }  # fmt: skip

    return [
        frame("quality", "ctrl-v23", [full("tf.v23", "v23", False)],
              path=f"{_PROMOTION}/tf-compare-ctrl-vs-v23.json", **_EARLY),
        frame("quality", "ctrl-reboot", [full("tf.floor", "v20 control, rebooted", True)],
              path=f"{_PROMOTION}/tf-compare-ctrl-vs-ctrl2.json", **_EARLY),
        frame("quality", "mopd", [
            printed("mopd.tf_residency", "m-ctrl", "m-hot"), printed("mopd.tf_weights", "v20 control", "m-ctrl")],
            path=f"{_MOPD}/VERDICT.md", **_LATE),
    ]  # fmt: skip


def greedy(source: PublishedFolder) -> list[Receipt]:
    """Greedy answers of twelve prompts, to their first different token."""
    facts = source.facts()
    made = []
    for key, file, frame_of in (
        ("greedy.v23", f"{_PROMOTION}/greedy-compare-ctrl-vs-v23.json", _EARLY),
        ("greedy.floor", f"{_PROMOTION}/greedy-compare-ctrl-vs-ctrl2.json", _EARLY),
        ("mopd.greedy_residency", f"{_MOPD}/VERDICT.md", _LATE),
        ("mopd.greedy_weights", f"{_MOPD}/VERDICT.md", _LATE),
    ):
        rows = [
            {"comparison": key, "floor": key == "greedy.floor", "prompt": prompt, "first_divergence": token,
             "identical": token is None}
            for prompt, token in facts[key]["first_divergence"].items()
        ]  # fmt: skip
        made.append(frame("greedy", key, rows, path=file, **frame_of))
    return made


def suites(source: PublishedFolder) -> list[Receipt]:
    """Function-call suites by server and split, and the flood suite by server and history."""
    facts = source.facts()
    made = []
    for key, value in facts.items():
        family, _, rest = key.partition(".")
        server, _, split = rest.partition("_")
        if family == "bfcl" and server in _SERVERS:
            early = server in ("ctrl", "v23")
            rows = [_suite("bfcl", split, "all", server, value, value["n"], value["ok"])]
            rows += [
                _suite("bfcl", split, part, server, {}, total, ok)
                for part, (ok, total) in ((name, item) for name, item in value.items() if isinstance(item, list))
            ]
            path = f"{_PROMOTION}/*-summary.json" if early else f"{_MOPD}/bfcl-*-summary.json"
            made.append(frame("suite", key, rows, path=path, **(_EARLY if early else _LATE)))
        elif family == "flood" and server in _SERVERS and not split:
            rows = [_suite("flood", "72 tasks", "all", server, value, value["tasks"], value["solved"], flood=True)]
            for history, says in (("h0", "no history"), ("h1", "flooded history")):
                part = value[history]
                rows.append(_suite("flood", "72 tasks", says, server, part, part["solved"][1], part["solved"][0]))
            made.append(frame("suite", key, rows, path=f"{_MOPD}/flood-*-summary.json", **_LATE))
    return made


def _suite(
    suite: str, split: str, part: str, server: str, value: dict[str, Any], n: int, ok: int, *, flood: bool = False
) -> dict[str, Any]:
    weights, placement = _SERVERS[server]
    tokens = value["tokens"] if flood else value.get("tokens")
    return {
        "suite": suite, "split": split, "part": part, "weights": weights, "placement": placement, "n": n, "ok": ok,
        "errors": value.get("errors"), "flooded": value.get("flooded"), "calls": value.get("calls"),
        "multi_call": value.get("multi_call"), "tokens": tokens, "wall_s": value.get("wall_s"),
    }  # fmt: skip


def profile(source: PublishedFolder) -> list[Receipt]:
    """The profiler's table of v21: 64 decode tokens and one prefill step."""
    value = source.json("profiler.json")
    return [
        frame(
            "profile",
            "v21",
            value["rows"],
            path=f"{FOLDER}/{value['source_path']}",
            commits=("66bebb58",),
            boot="v21",
            dated="2026-09-22",
            parameters={
                "decode_tokens": 64,
                "prefill_steps": 1,
                "self_cpu_total_s": value["self_cpu_total_s"],
                "self_cuda_total_s": value["self_cuda_total_s"],
            },
            note="spans contain kernels and operators: lines do not add up; categories were added by the transcriber",
        )
    ]
