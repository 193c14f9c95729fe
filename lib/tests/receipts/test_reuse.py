"""A receipt that a dead run had finished is used again by the next run, and counts for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from lanelab.receipts import Receipt, RecipeRef, Source, Store, current, key_of, new_id, reuse, views

STEP = "04-decode"


def run_folder(campaign: Path, name: str, status: str | None, receipts: tuple[str, ...] = ()) -> Path:
    folder = campaign / "runs" / STEP / name
    folder.mkdir(parents=True)
    if status:
        started = f"2026-01-01T00:00:{name[-2:]}Z"
        (folder / "run.json").write_text(json.dumps({"status": status, "started": started, "receipts": receipts}))
    return folder


def written(campaign: Path, run: str, tok_s: float, **parameters: object) -> Receipt:
    return Store(campaign).write(
        Receipt(
            id=new_id("knee", datetime.now(UTC)), kind="knee", origin="measured", campaign=campaign.name, step=STEP,
            run=run, recipe=RecipeRef(name="r", digest="d"), parameters=parameters,
            source=Source(workload="knee", workload_version=1), rows=[{"streams": 1, "aggregate_tok_s": tok_s}],
        )
    )  # fmt: skip


def speeds(campaign: Path, run: str | None = None) -> list[float]:
    return [row[0] for row in views.open([campaign], run).execute("SELECT aggregate_tok_s FROM knee").fetchall()]


def test_a_finished_receipt_of_a_dead_run_is_found_and_counts_at_once_and_after(tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    run_folder(campaign, "20260101-01", "running")  # its runner was killed
    left = written(campaign, "20260101-01", 7.0)
    now = run_folder(campaign, "20260101-02", "running")
    assert speeds(campaign) == []

    found = reuse.left_behind(campaign, step=STEP, kind="knee", key=key_of(left)[0], run_dir=now)
    assert found is not None and found.id == left.id
    reuse.note(now, left.id)
    reuse.note(now, left.id)
    assert reuse.noted(now) == [left.id]
    assert speeds(campaign, "20260101-02") == [7.0]

    (now / "run.json").write_text(json.dumps({"status": "ok", "started": "2026-01-01T00:00:02Z", "receipts": []}))
    assert speeds(campaign) == [7.0]
    assert current.read_runs(campaign).by_id["20260101-02"].receipts == {left.id}


def test_what_another_key_a_good_run_or_a_retraction_covers_is_not_used_again(tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    run_folder(campaign, "20260101-01", "died")
    early = written(campaign, "20260101-01", 1.0)
    run_folder(campaign, "20260101-02", "ok")
    now = run_folder(campaign, "20260101-05", "running")
    key = key_of(early)[0]
    ask = {"step": STEP, "kind": "knee", "run_dir": now}
    assert reuse.left_behind(campaign, key=key, **ask) is None, "a good run came after it"

    run_folder(campaign, "20260101-03", "timeout")
    other = written(campaign, "20260101-03", 2.0, repeats=3)
    assert reuse.left_behind(campaign, key=key, **ask) is None, "it measured something else"
    assert reuse.left_behind(campaign, key=key_of(other)[0], **ask) == other

    note = Receipt(id=new_id("retraction", datetime.now(UTC)), kind="retraction", origin="measured", campaign="c")
    Store(campaign).retract(other.id, "the wrong lane", note)
    assert reuse.left_behind(campaign, key=key_of(other)[0], **ask) is None


def test_a_run_folder_elsewhere_reuses_nothing(tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    run_folder(campaign, "20260101-01", "died")
    left = written(campaign, "20260101-01", 1.0)
    elsewhere = tmp_path / "elsewhere" / "20260101-02"
    elsewhere.mkdir(parents=True)
    asked = {"step": STEP, "kind": "knee", "key": key_of(left)[0]}
    assert reuse.left_behind(campaign, **asked, run_dir=elsewhere) is None
    assert reuse.left_behind(campaign, **asked, run_dir=campaign / "runs" / STEP / "20260101-02") == left
