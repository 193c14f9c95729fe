"""The benchmarks: streamed prompts, concurrency sweeps, agent tasks and long context."""

from __future__ import annotations

from typing import Any

from lanelab.importers.mimo26.source import FOLDER, PublishedFolder, frame, local_time
from lanelab.receipts import Receipt

_RECEIPTS = f"{FOLDER}/results/2026-09-22-hotsplit/receipts"
_SIZES = {"2000": "3K", "8000": "11.5K", "32000": "46K"}  # the bench's nominal size: what the post calls it
_TTFT = {"v19b": "v19b", "v20ctrl": "v20", "v21": "v21", "v22-hot153": "v22", "v23": "v23", "v24-1m": "v24"}
_KNEE = {
    "v14": ("v14", "2026-09-21"),
    "v17": ("v17", "2026-09-21"),
    "v19b-hotsplit": ("v19b", None),
    "v21-hotmix": ("v21", None),
    "v22-hot153": ("v22", None),
}
_AGENT = {"v19b": "v19b", "v20ctrl": "v20", "v21": "v21", "v22-hot153": "v22", "v23": "v23", "v24-1m": "v24"}


def decode(source: PublishedFolder) -> list[Receipt]:
    """One receipt a boot: three sizes, three runs each. The source's medians are figures of their own."""
    made = []
    for tag, boot in _TTFT.items():
        rows = [
            _decode_row(size, value["prompt_tokens"], repeat, ttft, speed)
            for size, value in source.json(f"bench/ttft-{tag}.json").items()
            for repeat, (ttft, speed) in enumerate(value["runs"])
        ]
        made.append(_decode(tag, boot, rows, f"{_RECEIPTS}/ttft-{tag}.json", ("66bebb58", "6cd315c9"), _dated(boot)))
    facts = source.facts()
    rows = []
    for size, (prompt_tokens, *_), runs in zip(
        _SIZES, facts["mopd.ttft_mhot"], facts["mopd.ttft_mhot_runs"], strict=True
    ):
        rows += [_decode_row(size, prompt_tokens, repeat, ttft, speed) for repeat, (ttft, speed) in enumerate(runs)]
    path = f"{FOLDER}/results/2026-09-28-mopd/receipts/VERDICT.md"
    made.append(_decode("m-hot", "m-hot", rows, path, ("57111f17", "afdb4121"), "2026-09-28"))
    return made


def _dated(boot: str) -> str:
    return "2026-09-23" if boot == "v24" else "2026-09-22"


def _decode_row(size: str, prompt_tokens: int, repeat: int, ttft: float, speed: float) -> dict[str, Any]:
    return {
        "size": _SIZES[size], "streams": 1, "stream": 0, "repeat": repeat, "status": "ok",
        "prompt_tokens": prompt_tokens, "ttft_s": ttft, "decode_tok_s": speed,
    }  # fmt: skip


def _decode(
    tag: str, boot: str, rows: list[dict[str, Any]], path: str, commits: tuple[str, ...], dated: str
) -> Receipt:
    return frame(
        "decode", tag, rows, path=path, commits=commits, boot=boot, dated=dated,
        parameters={"nominal_sizes": {name: int(size) for size, name in _SIZES.items()}, "new_tokens": 128},
        note="decode speed after the first token; 128 new tokens a run according to the post",
    )  # fmt: skip


def knee(source: PublishedFolder) -> list[Receipt]:
    """One receipt a boot; a row is the source's mean of two runs a level, with the runs where it gives them."""
    made = []
    for tag, (boot, dated) in _KNEE.items():
        value = source.json(f"bench/knee-{tag}.json")
        rows = []
        for row in value["rows"]:
            if isinstance(row, dict):
                streams, aggregate, each, runs = (
                    row["concurrency"], row["aggregate_tok_s"], row["per_stream_tok_s"], row["runs_tok_s"],
                )  # fmt: skip
            else:
                (streams, aggregate, each), runs = row, []
            rows.append(
                {
                    "streams": streams, "new_tokens": 192, "aggregate_tok_s": aggregate,
                    "per_stream_tok_s": each, "runs_tok_s": runs,
                }
            )  # fmt: skip
        is_log = "ts" not in value
        made.append(
            frame(
                "knee",
                tag,
                rows,
                path=f"{_RECEIPTS}/knee-{tag}.{'log' if is_log else 'json'}",
                commits=("66bebb58", "6cd315c9"),
                boot=boot,
                dated=dated,
                finished=None if is_log else local_time(value["ts"]),
                parameters={"tag": value["tag"], "runs": 2},
                evidence={"rows": "each row is the source's mean of two runs"},
                note="192 new tokens a stream and two runs a level according to the post, which says it of v14",
            )
        )
    return made


def agent(source: PublishedFolder) -> list[Receipt]:
    """Two receipts a pass: its turns, and its totals by task. Answer texts were not published with the figures."""
    made = []
    for path in sorted((source.folder / "bench").glob("agentfix-*.json")):
        value = source.json(f"bench/{path.name}")
        tag, number = value["tag"].rsplit("-r", 1)
        turns, tasks = [], []
        for task, result in value["res"].items():
            for turn, (tokens, seconds, finish, is_call, preview) in enumerate(result["samples"]):
                turns.append(
                    {
                        "task": task, "turn": turn, "pass_number": int(number), "completion_tokens": tokens,
                        "seconds_s": seconds, "finish": finish, "tool_call": is_call,
                        "answer_empty": preview == "", "row_state": "warm",
                    }
                )  # fmt: skip
            tasks.append(
                {
                    "task": task, "pass_number": int(number), "tok_s": result["tok_s"],
                    "turns": len(result["samples"]), "completion_tokens": result["tokens"],
                    "server_tokens": result["gen_metric"], "accept_rate": result["accept"],
                    "accept_per_step": result["acc_per_step"], "row_state": "warm",
                }
            )  # fmt: skip
        for kind, rows in (("agent", turns), ("agent-task", tasks)):
            made.append(
                frame(
                    kind,
                    value["tag"],
                    rows,
                    path=f"{_RECEIPTS}/{path.name}",
                    commits=("66bebb58", "6cd315c9"),
                    boot=_AGENT[tag],
                    finished=local_time(value["ts"]),
                    state="warm",
                    parameters={"pass": int(number), "weighted_accept": value["weighted_accept"]},
                    evidence={"warm": "a second or third pass over the same prompts; no counters were published"},
                )
            )
    return made


def needles(source: PublishedFolder) -> list[Receipt]:
    """Long context by boot. Rows that ran beside another client stand in a receipt labelled contended."""
    made = []
    first = source.lines("bench/longctx-v23.jsonl")
    clean = [row for row in first if row["size"] < 196_608]
    beside = [row for row in first if row["size"] >= 196_608]
    reason = {"contended": "another client used the lane, as the source says; run again in longctx-v23b"}
    for name, values, state, evidence, commit, boot, dated in (
        ("v23", clean, "unknown", {}, "cc1f70ea", "v23", "2026-09-22"),
        ("v23-contended", beside, "contended", reason, "cc1f70ea", "v23", "2026-09-22"),
        ("v23b", source.lines("bench/longctx-v23b.jsonl"), "unknown", {}, "cc1f70ea", "v23", "2026-09-22"),
        ("v24", source.lines("bench/longctx-v24.jsonl"), "unknown", {}, "c22bc263", "v24", "2026-09-23"),
    ):
        file = "longctx-v24" if boot == "v24" else ("longctx-v23b" if name == "v23b" else "longctx-v23")
        rows = [_needle_row(row, state) for row in values]
        made.append(
            frame(
                "needle",
                name,
                rows,
                path=f"{_RECEIPTS}/{file}.jsonl",
                commits=(commit,),
                boot=boot,
                dated=dated,
                state=state,
                evidence=evidence,
            )
        )
    facts = source.facts()
    rows = [
        {"task": "needle", "depth": depth, "prompt_tokens": tokens, "ttft_s": ttft, "passed": True}
        for depth, tokens, ttft in facts["verdict.m1_needles"]
    ]
    tokens, ttft, speed = facts["verdict.m1_decode"]
    rows.append({"task": "decode", "prompt_tokens": tokens, "ttft_s": ttft, "decode_tok_s": speed})
    made.append(
        frame(
            "needle",
            "v24-1m",
            rows,
            path=f"{FOLDER}/results/2026-09-24-promotion/receipts/VERDICT.md",
            commits=("b929f9f5", "bb95d4f1"),
            boot="v24",
            dated="2026-09-24",
            note="from the verdict's table, which says that all codes were found; after a reboot of v24",
        )
    )
    return made


def _needle_row(row: dict[str, Any], state: str) -> dict[str, Any]:
    return {
        "task": row["kind"], "size_tokens": row["size"], "depth": row.get("depth"),
        "prompt_tokens": row["prompt_tokens"], "completion_tokens": row["completion_tokens"],
        "ttft_s": row["ttft_s"], "decode_tok_s": row["decode_tok_s"], "passed": row.get("pass_"),
        "code": row.get("code"), "answer": row.get("text"), "row_state": state,
    }  # fmt: skip
