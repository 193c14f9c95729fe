"""How long a question to a large store takes: 10,000 receipts, a million rows, some of them in Parquet.

    python lib/benchmarks/receipts.py [--receipts 10000] [--rows 1000000] [--dir DIR] [--repeats 3]

Receipts are of kind decode with all their fields filled, one in a hundred holds its rows in Parquet.
Each question runs in a process of its own, started cold (imports included), as `lanelab query` does;
the file system's cache is warm. Time is the wall clock's, so say what else the machine did: the load
average stands in the result. The last line of stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lanelab.receipts import Receipt, RowsFile, Store
from lanelab.receipts.store import checked, parquet_bytes

TARGET_S = 3.0
START = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = {
    "aggregate": "SELECT size, count(*) AS n, median(decode_tok_s) AS tok_s FROM decode GROUP BY size ORDER BY size",
    "count": "SELECT count(*) FROM decode",
    "by_machine": "SELECT machine, streams, avg(ttft_s), max(max_gap_s) FROM decode WHERE status = 'ok' GROUP BY ALL",
    "every_field": "SELECT max(COLUMNS(* EXCLUDE (parameters))) FROM decode",
}


def main() -> int:
    """Make the store if DIR has none, ask, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--receipts", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dir", type=Path, help="keep the store here and use it again")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lab = (given.dir or Path(scratch)).resolve()
        campaign_dir = lab / "data" / "campaigns" / "bench"
        if not campaign_dir.exists():
            began = time.monotonic()
            fill(campaign_dir, given.receipts, given.rows)
            print(f"made {given.receipts} receipts in {time.monotonic() - began:.0f} s", file=sys.stderr)
        result = measure(lab, given.repeats)
    print(json.dumps(result))
    return 0 if result["met"] else 1


def fill(campaign_dir: Path, receipts: int, rows: int) -> None:
    """Write the store: one receipt in a hundred holds two fifths of all rows, in Parquet."""
    chance = random.Random(0)
    large = max(1, receipts // 100)
    folder = campaign_dir / "receipts" / "decode"
    folder.mkdir(parents=True)
    is_large = [number % 100 == 0 and number // 100 < large for number in range(receipts)]
    left = {True: int(rows * 0.4), False: rows - int(rows * 0.4)}
    to_come = {True: sum(is_large), False: receipts - sum(is_large)}
    for number, kind_of in enumerate(is_large):
        count = left[kind_of] // to_come[kind_of]
        left[kind_of] -= count
        to_come[kind_of] -= 1
        write(folder, number, chance, count)


def write(folder: Path, number: int, chance: random.Random, count: int) -> None:
    """One receipt. Not through `Store`: ten thousand fsyncs say nothing about reading."""
    moment = START + timedelta(minutes=number)
    ready = checked(
        Receipt(
            id=f"decode-{number:06}", kind="decode", origin="measured", campaign="bench", lane="mini",
            machine=f"m{number % 7}", model="mini", step="04-decode", started=moment, finished=moment,
            parameters={"preset": "quick", "sizes": ["128", "3K", "16K"]}, rows=[row(chance, at) for at in range(count)],
        )
    )  # fmt: skip
    if count > 1000:
        assert isinstance(ready.rows, list)
        content = parquet_bytes("decode", ready.rows)
        (folder / f"{ready.id}.parquet").write_bytes(content)
        beside = RowsFile(name=f"{ready.id}.parquet", count=count, sha256=hashlib.sha256(content).hexdigest())
        ready = ready.model_copy(update={"rows": beside})
    Store(folder.parent.parent).path_of(ready).write_bytes(ready.sealed().file_bytes())


def row(chance: random.Random, at: int) -> dict[str, Any]:
    """A row with every field filled: the longest JSON that the kind has."""
    return {
        "size": chance.choice(["128", "3K", "16K"]), "streams": chance.choice([1, 2, 4, 8]), "stream": at % 8,
        "repeat": at, "attempt": 1, "status": "ok", "prompt_tokens": chance.randrange(100, 16_000),
        "completion_tokens": 128, "tokens_by": "token_ids", "ttft_s": chance.random() * 3,
        "first_answer_s": chance.random() * 3, "last_token_s": chance.random() * 30,
        "decode_tok_s": chance.random() * 80, "prefill_tok_s": chance.random() * 3000, "tpot_s": chance.random() / 50,
        "max_gap_s": chance.random(), "dispatch_late_s": chance.random() / 1000, "row_state": "warm",
        "flags": [] if at % 10 else ["late"],
    }  # fmt: skip


def measure(lab: Path, repeats: int) -> dict[str, Any]:
    """Wall seconds of each question, cold process, best and median of the repeats."""
    environment = {**os.environ, "LANELAB_ROOT": str(lab)}
    environment.pop("LANELAB_RUN", None)
    seconds: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    cpu: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    count = 0
    for _ in range(repeats):
        for name, question in QUESTIONS.items():
            command = [sys.executable, "-c", "from lanelab.cli.main import entry; entry()", "query", question, "--json"]
            began, spent = time.monotonic(), _children_s()
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            seconds[name].append(time.monotonic() - began)
            cpu[name].append(_children_s() - spent)
            if name == "count":
                count = next(iter(json.loads(done.stdout.splitlines()[-1])["rows"][0].values()))
    folder = lab / "data" / "campaigns" / "bench" / "receipts" / "decode"
    files = list(folder.iterdir())
    best = {f"{name}_s": round(min(values), 3) for name, values in seconds.items()}
    return {
        "benchmark": "receipts", "receipts": sum(path.suffix == ".json" for path in files), "rows": count,
        "parquet_files": sum(path.suffix == ".parquet" for path in files),
        "megabytes": round(sum(path.stat().st_size for path in files) / 1e6), "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1), "repeats": repeats, "best": best,
        "median": {f"{name}_s": round(statistics.median(values), 3) for name, values in seconds.items()},
        "cpu_best": {f"{name}_s": round(min(values), 3) for name, values in cpu.items()},
        "target_s": TARGET_S, "met": best["aggregate_s"] < TARGET_S,
    }  # fmt: skip


def _children_s() -> float:
    """CPU seconds of the processes that have ended: what the clock would show if nothing else ran."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
