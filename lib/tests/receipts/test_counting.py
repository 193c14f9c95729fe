"""A new receipt takes the place of the one that it repeats, so that no view counts a measurement twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lanelab.receipts import Receipt, Source, Store, new_id, views
from lanelab.receipts.counting import counting, replaced_by

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def made(campaign: Path, run: str | None, minute: int, tok_s: float, **parameters: object) -> Receipt:
    draft = Receipt(
        id=new_id("knee", EPOCH + timedelta(minutes=minute)), kind="knee", origin="measured", campaign=campaign.name,
        step="04-decode", run=run, parameters=parameters, source=Source(workload="knee", workload_version=1),
        rows=[{"streams": 1, "aggregate_tok_s": tok_s}],
    )  # fmt: skip
    return Store(campaign).write(draft.model_copy(update={"supersedes": replaced_by(draft, campaign)}))


def ok_run(campaign: Path, name: str, receipt: Receipt) -> None:
    folder = campaign / "runs" / "04-decode" / name
    folder.mkdir(parents=True)
    record = {"status": "ok", "started": f"2026-01-01T00:{name[-2:]}:00Z", "receipts": [receipt.id]}
    (folder / "run.json").write_text(json.dumps(record))


def speeds(campaign: Path) -> list[float]:
    return [row[0] for row in views.open([campaign]).execute("SELECT aggregate_tok_s FROM knee").fetchall()]


def test_by_hand_after_a_run_and_a_run_after_that(tmp_path: Path) -> None:
    """The life of a notebook: a run, then the same step by hand twice, then a run again."""
    campaign = tmp_path / "c"
    ok_run(campaign, "run-01", made(campaign, "run-01", 1, 1.0))
    assert speeds(campaign) == [1.0]
    by_hand = made(campaign, None, 2, 2.0)
    assert by_hand.supersedes and speeds(campaign) == [2.0]
    again = made(campaign, None, 3, 3.0)
    assert again.supersedes == by_hand.id and speeds(campaign) == [3.0]
    ok_run(campaign, "run-04", made(campaign, "run-04", 4, 4.0))
    assert speeds(campaign) == [4.0]
    assert [item.rows[0]["aggregate_tok_s"] for item in counting(campaign)] == [4.0]


def test_another_measurement_replaces_nothing(tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    made(campaign, None, 1, 1.0)
    other = made(campaign, None, 2, 2.0, repeats=5)
    assert other.supersedes is None and sorted(speeds(campaign)) == [1.0, 2.0]
