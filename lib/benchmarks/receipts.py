"""How long a question to a large store takes: 10,000 receipts, a million rows, some of them in Parquet.

    python lib/benchmarks/receipts.py [--receipts 10000] [--rows 1000000] [--dir DIR] [--repeats 3]

Receipts are of kind decode with all their fields filled, one in a hundred holds its rows in Parquet.
Each question runs in a process of its own, started cold (imports included), as `lanelab query` does;
the file system's cache is warm. Time is the wall clock's, so say what else the machine did: the load
average stands in the result. The last line of stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lanelab.receipts import Receipt, RowsFile, Store
from lanelab.receipts.store import checked

TARGET_S = 3.0
START = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = {
    "aggregate": "SELECT size, count(*) AS n, median(decode_tok_s) AS tok_s FROM decode GROUP BY size ORDER BY size",
    "count": "SELECT count(*) FROM decode",
    "by_machine": "SELECT machine, streams, avg(ttft_s), max(max_gap_s) FROM decode WHERE status = 'ok' GROUP BY ALL",
    "every_field": "SELECT count(DISTINCT d) AS n FROM (SELECT COLUMNS(* EXCLUDE (digest)) FROM decode LIMIT 10) d",
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
    rows_large, rows_small = int(rows * 0.4) // large, int(rows * 0.6) // max(1, receipts - large)
    folder = campaign_dir / "receipts" / "decode"
    folder.mkdir(parents=True)
    for number in range(receipts):
        write(folder, number, chance, rows_large if number % 100 == 0 and number // 100 < large else rows_small)


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
        import hashlib

        from lanelab.receipts.store import parquet_bytes

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
    count = 0
    for _ in range(repeats):
        for name, question in QUESTIONS.items():
            command = [sys.executable, "-c", "from lanelab.cli.main import entry; entry()", "query", question, "--json"]
            began = time.monotonic()
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            seconds[name].append(time.monotonic() - began)
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
        "target_s": TARGET_S, "met": best["aggregate_s"] < TARGET_S,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
