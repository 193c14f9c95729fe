"""Workloads against a server whose times and counters are known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lanelab import measure
from lanelab.errors import NotFound, UsageError
from lanelab.lane import LaneDown
from lanelab.measure.bench import TooLong
from lanelab.measure.driver import NothingMeasured
from lanelab.receipts import Receipt, Store, measure_key

SMALL = {"sizes": {"S": 40, "M": 90}, "streams": [1, 2], "repeats": 2, "new_tokens": 6, "timeout_s": 5.0}


def run(fake: Any, lab: Path, workload: str = "decode", **parameters: Any) -> Receipt:
    settings = SMALL | parameters if workload == "decode" else parameters
    return measure.run(
        workload, campaign_dir=lab, campaign="here", lane=fake.url, parameters=settings, say=lambda _: None
    )  # fmt: skip


def test_decode_measures_what_the_server_did(fake: Any, lab: Path) -> None:
    fake.first_s, fake.token_s = 0.1, 0.02
    receipt = run(fake, lab)
    rows = receipt.rows
    assert isinstance(rows, list) and len(rows) == 2 * 2 * (1 + 2)
    for row in rows:
        assert (row["status"], row["row_state"], row["tokens_by"]) == ("ok", "cold", "token_ids")
        assert row["prompt_tokens"] == SMALL["sizes"][row["size"]]  # type: ignore[index]
        assert row["completion_tokens"] == 6
        assert row["ttft_s"] == pytest.approx(0.1, abs=0.05)
        assert row["decode_tok_s"] == pytest.approx(1 / 0.02, rel=0.4)
        assert row["dispatch_late_s"] < 0.1
    assert receipt.labels.state == "cold"
    assert receipt.environment.server["version"] == "1.2.3"
    assert receipt.environment.client["event_loop"].startswith("asyncio")
    assert Store(lab).read(receipt.id).digest == receipt.digest
    assert not list((lab / "journal").glob("*"))


def test_every_prompt_is_new_from_its_first_characters(fake: Any, lab: Path) -> None:
    run(fake, lab)
    prompts = [body["prompt"] for body in fake.requests]
    assert len({prompt[:12] for prompt in prompts}) == len(prompts) == 12 + 1  # one warm-up, not counted
    assert all(body["ignore_eos"] and body["min_tokens"] == body["max_tokens"] for body in fake.requests)
    sentences = [part for prompt in prompts for part in prompt.split("Item ")[1:-1]]
    assert len(set(sentences)) > 0.99 * len(sentences)


def test_knee_adds_up(fake: Any, lab: Path) -> None:
    fake.first_s, fake.token_s = 0.05, 0.01
    receipt = run(fake, lab, "knee", streams=[1, 4], repeats=2, prompt_tokens=32, new_tokens=11)
    assert isinstance(receipt.rows, list)
    assert [(row["streams"], row["repeat"], row["ok"], row["failed"]) for row in receipt.rows] == [
        (1, 0, 1, 0), (4, 0, 4, 0), (1, 1, 1, 0), (4, 1, 4, 0),
    ]  # fmt: skip
    for row in receipt.rows:
        assert row["completion_tokens"] == 11 * row["streams"]
        assert row["aggregate_tok_s"] == pytest.approx(row["completion_tokens"] / row["wall_s"])
        assert row["wall_s"] == pytest.approx(0.05 + 10 * 0.01, abs=0.08)
        assert row["loop_lag_max_s"] < 0.2 and row["client_cpu_s"] < 2


def test_requests_of_others_make_it_contended(fake: Any, lab: Path) -> None:
    fake.strangers = 1
    receipt = run(fake, lab, repeats=1, streams=[1])
    assert receipt.labels.state == "contended"
    assert receipt.labels.evidence["groups"][0]["running_before"] == 1
    assert isinstance(receipt.rows, list) and {row["row_state"] for row in receipt.rows} == {"contended"}


def test_what_a_plain_server_cannot_tell_is_unknown_and_said(fake: Any, lab: Path) -> None:
    fake.metrics = fake.tokenize = False
    fake.refuse_fields = {"return_token_ids", "ignore_eos"}
    receipt = run(fake, lab, repeats=1, streams=[1])
    assert receipt.labels.state == "unknown"
    server = receipt.environment.server
    assert (server["tokenize"], server["metrics"], server["fixed_length"]) == (False, False, False)
    assert isinstance(receipt.rows, list)
    assert {row["tokens_by"] for row in receipt.rows} == {"final_usage"}
    assert receipt.labels.evidence["groups"][0]["prompt_length_by"] == ["estimated"]
    for row in receipt.rows:
        assert row["prompt_tokens"] == pytest.approx(SMALL["sizes"][row["size"]], rel=0.3)  # type: ignore[index]


def test_a_lane_that_dies_keeps_its_rows_and_the_next_run_goes_on(fake: Any, lab: Path) -> None:
    fake.die_after = 5
    with pytest.raises(measure.LaneLost, match="rows are kept") as lost:
        run(fake, lab)
    kept = [json.loads(line) for line in Path(lost.value.data["journal"]).read_text().splitlines()]
    whole = [entry["value"] for entry in kept if entry["entry"] == "row" and entry["value"].get("status") == "ok"]
    assert len(whole) == 4 and not list(lab.glob("receipts/*/*"))


def test_a_killed_run_is_resumed_without_measuring_twice(fake: Any, lab: Path) -> None:
    fake.first_s = 0.15
    code = (
        "from pathlib import Path; from lanelab import measure; "
        f"measure.run('decode', campaign_dir=Path({str(lab)!r}), campaign='here', lane={fake.url!r}, parameters={SMALL!r})"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while sum(path.read_text().count('"row"') for path in (lab / "journal").glob("*.jsonl")) < 3:
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (journal,) = (lab / "journal").glob("*.jsonl")
    rows = [line for line in journal.read_text().splitlines() if '"row"' in line]
    said: list[str] = []
    fake.first_s = 0.01
    receipt = measure.run("decode", campaign_dir=lab, campaign="here", lane=fake.url, parameters=SMALL, say=said.append)
    assert isinstance(receipt.rows, list) and len(receipt.rows) == 12
    assert "kept from an earlier run" in said[0]
    slow = [row for row in receipt.rows if row["ttft_s"] > 0.12]
    assert len(rows) - 2 <= len(slow) <= len(rows)
    assert receipt.labels.evidence["rows_from_an_earlier_run"] == len(slow)
    identities = [(row["size"], row["streams"], row["stream"], row["repeat"]) for row in receipt.rows]
    assert len(set(identities)) == len(identities)


def test_sizes_that_do_not_fit_are_left_out_and_said(fake: Any, lab: Path) -> None:
    fake.max_model_len = 60
    receipt = run(fake, lab, repeats=1, streams=[1])
    assert isinstance(receipt.rows, list) and {row["size"] for row in receipt.rows} == {"S"}
    assert any("skipped" in group for group in receipt.labels.evidence["groups"])
    fake.max_model_len = 20
    with pytest.raises(TooLong, match="longest prompt"):
        run(fake, lab, repeats=1, streams=[1])


def test_a_server_that_only_fails_is_an_error_that_names_its_receipt(fake: Any, lab: Path) -> None:
    fake.first_s = 0.0
    with pytest.raises(measure.NothingMeasured) as failed:
        run(fake, lab, repeats=1, streams=[1], new_tokens=200, timeout_s=0.2)
    receipt = Store(lab).read(failed.value.data["receipt"])
    assert isinstance(receipt.rows, list)
    assert {(row["status"], row["error_kind"]) for row in receipt.rows} == {("failed", "timeout")}


def test_mistakes_are_one_line_each(lab: Path) -> None:
    for workload in measure.WORKLOADS.values():
        with pytest.raises(NotFound, match="preset"):
            workload.resolve("quik")
        with pytest.raises(NotFound, match="did you mean 'repeats'"):
            workload.resolve("quick", {"repeat": 3})
        with pytest.raises(UsageError, match="repeats"):
            workload.resolve("quick", {"repeats": 0})
    with pytest.raises(LaneDown):
        measure.run("decode", campaign_dir=lab, campaign="here", lane="http://127.0.0.1:1")
    with pytest.raises(NotFound, match="decode, knee"):
        measure.run("deocde", campaign_dir=lab, campaign="here", lane="http://127.0.0.1:1")


def test_the_measure_key_depends_on_parameters_and_not_on_the_presets_name() -> None:
    decode = measure.WORKLOADS["decode"]
    common: dict[str, Any] = {"workload": "decode", "version": 1, "model": "m", "machine": "x", "recipe_digest": None}
    quick = decode.resolve()
    assert quick == decode.resolve("full", decode.resolve("quick"))
    assert measure_key(parameters=quick, **common) != measure_key(parameters=decode.resolve("full"), **common)


@pytest.mark.parametrize(
    ("garbage", "kind"),
    [(['{"choices":5}', "[DONE]"], "malformed_event"),
     (['{"choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"completion_tokens":6}}', "[DONE]"], "no_tokens"),
     (['{"usage":{"completion_tokens":"zz","prompt_tokens":-5}}', "[DONE]"], "no_tokens")],
)  # fmt: skip
def test_a_request_that_brought_no_token_is_a_failed_row(fake: Any, lab: Path, garbage: list[str], kind: str) -> None:
    fake.garbage = garbage
    with pytest.raises(NothingMeasured) as raised:
        run(fake, lab, sizes={"S": 40}, streams=[1], repeats=2)
    assert raised.value.data["error_kinds"] == {kind: 2}
    receipt = Store(lab).read(str(raised.value.data["receipt"]))
    assert isinstance(receipt.rows, list) and {row["status"] for row in receipt.rows} == {"failed"}
    fake.requests.clear()
    with pytest.raises(NothingMeasured):
        run(fake, lab, "knee", streams=[1], repeats=1, prompt_tokens=40, new_tokens=4)


def test_a_limit_that_never_comes_is_refused(fake: Any, lab: Path) -> None:
    with pytest.raises(UsageError, match="timeout_s"):
        run(fake, lab, timeout_s=float("inf"))
