"""A plan on record, and the two commands that print one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lanelab import planning
from lanelab.cli.main import main
from lanelab.receipts import Store

# DESIGN.md's commands table, row `lanelab plan`
PROMISED = [
    "experts_gib",
    "nonexpert_gib",
    "cells",
    "cell_mib",
    "hbm_budget_gib",
    "hot_cells",
    "hot_layers_equivalent",
    "cold_gib",
    "kv_bytes_per_token",
    "kv_tokens",
    "context_max",
    "kv_tokens_per_hot_gib",
    "cold_read_gib_per_token",
    "ceiling_tok_s",
    "host_pinned_gib",
    "host_peak_gib",
    "verdict",
    "findings",
]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_plan_gives_every_promised_field(capsys: pytest.CaptureFixture[str]) -> None:
    code, data = answer(capsys, "plan", "mimo-v2.6-pro", "--machine", "gb300", "--hot-gib", "152.8")
    assert code == 0
    assert not set(PROMISED) - set(data)
    assert all(data[name] is not None for name in PROMISED)
    assert data["verdict"] == "fits_with_offload"
    assert {"rule", "severity", "message", "fix"} == set(data["findings"][0])
    times = [term["ms"] for term in data["ceiling_terms"]]
    assert data["ceiling_tok_s"] == pytest.approx(1000 / sum(times))
    cold = data["ceiling_terms"][0]
    assert data["cold_read_gib_per_token"] == cold["gib"] == pytest.approx(cold["ms"] * cold["gib_s"] / 1000)


def test_a_machine_without_hbm(capsys: pytest.CaptureFixture[str]) -> None:
    code, data = answer(capsys, "plan", "mini", "--machine", "cpu-2core")
    assert code == 0
    assert (data["verdict"], data["hbm_budget_gib"], data["cold_gib"], data["emulated"]) == ("fits", None, 0, None)
    code, data = answer(capsys, "plan", "mini", "--machine", "cpu-2core", "--hbm-gib", "0.2", "--context", "4096")
    assert (data["verdict"], data["emulated"]) == ("fits_with_offload", "0.2 GiB HBM")
    assert data["hbm_budget_gib"] == pytest.approx(0.19)


def test_too_much_hot_memory_does_not_fit_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, data = answer(capsys, "plan", "mimo-v2.6-pro", "--machine", "gb300", "--hot-gib", "400")
    assert (code, data["verdict"], data["kv_tokens"]) == (0, "does_not_fit", 0)
    assert data["findings"][0]["rule"] == "memory-short"


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["plan", "mimo-v2.6-por", "--machine", "gb300"], 1, "did you mean 'mimo-v2.6-pro'"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb30"], 1, "did you mean 'gb300'"),
        (["plan", "mimo-v2.6-pro"], 2, "--machine"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--hot-gib", "-1"], 2, "--hot-gib"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--hot-gib", "nan"], 2, "--hot-gib"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--context", "0"], 2, "--context"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--set", "o_proj"], 2, "role=dtype"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--set", "o_porj=fp8"], 2, "did you mean 'o_proj'"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--set", "o_proj=fp7"], 2, "unknown dtype 'fp7'"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--set", "other_loaded=fp8"], 2, "only its bytes are known"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--kv-dtype", "fp5"], 2, "unknown dtype 'fp5'"),
        (["plan", "mimo-v2.6-pro", "--machine", "gb300", "--hbm-gib", "1"], 2, "has 250.7 GiB of HBM"),
        (["plan", "mini", "--machine", "cpu-2core", "--link-gib-s", "1"], 2, "--hbm-gib"),
        (["plan", "mini", "--machine", "cpu-2core", "--set", "o_proj=fp8", "--set", "o_proj=bf16"], 2, "a second time"),
        (["plan", "mini", "--machine", "cpu-2core", "--set", "foo=bar"], 2, "unknown role 'foo'"),
        (["plan", "mini", "--machine", "cpu-2core", "--utilisation", "nan"], 2, "finite"),
        (["plan", "mini", "--machine", "cpu-2core", "--coverage", "inf"], 2, "finite"),
        (["plan", "", "--machine", "cpu-2core"], 2, "empty"),
        (["model", " "], 2, "empty"),
        (["site", "build", "--url", "javascript:alert"], 2, "no address of a site"),
        (["site", "build", "--url", "http://[::1"], 2, "no address of a site"),
        (["lane", "down"], 2, "--all"),
        (["lane", "down", "mini", "--all"], 2, "--all"),
        (["lane", "up", "mini", "--timeout-s", "nan"], 2, "finite"),
        (["model", "nobody/nothing"], 1, "not read yet"),
        (["machine", "show", "gb"], 1, "unknown machine 'gb'"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], words: list[str], code: int, expected: str) -> None:
    assert main([*words, "--json"]) == code
    printed = capsys.readouterr()
    data = json.loads(printed.out.strip().splitlines()[-1])
    assert expected in data["error"]["message"]
    assert len(printed.err.strip().splitlines()) == 1


def test_model_gives_the_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    code, data = answer(capsys, "model", "mimo-v2.6-pro")
    assert (code, data["cells"], data["cell_bytes"], data["kv_bytes_per_token"]) == (0, 26_496, 20_054_016, 51_200)
    assert sum(data["bytes_by_role"].values()) == data["bytes_total"] == 573_492_132_336


def test_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["plan", "mini", "--machine", "cpu-2core"],
        ["model", "mini"],
        ["machine", "list"],
        ["machine", "show", "gb300"],
    ):
        assert main(words) == 0
        assert capsys.readouterr().out.count("\n") >= 2


def test_a_plan_is_written_once_a_run(tmp_path: Path) -> None:
    options = {"hot_gib": 152.8, "context": 262_144, "coverage": None}
    first = planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", run="run-1", **options)
    again = planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", run="run-1", **options)
    assert (first.id, first.origin, first.kind, first.model) == (again.id, "predicted", "plan", "mimo-v2.6-pro")
    other_run = planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", run="run-2", **options)
    assert other_run.id != first.id and other_run.supersedes is None
    assert len(list(Store(tmp_path).paths())) == 2
    by_hand = planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", **options)
    assert by_hand.supersedes is None
    assert planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", **options).id == by_hand.id


def test_the_receipt_holds_the_plan_to_the_digit(tmp_path: Path) -> None:
    planned = planning.plan("mimo-v2.6-pro", "gb300", hot_gib=152.8)
    receipt = planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", hot_gib=152.8)
    rows = Store(tmp_path).rows(receipt)
    numbers = {row["name"]: row["value"] for row in rows if row["group"] == "plan" and row["value"] is not None}
    wanted = {name: value for name, value in planned.fields().items() if isinstance(value, (int, float))}
    assert numbers == wanted
    units = {row["name"]: row["unit"] for row in rows if row["group"] == "plan"}
    assert (units["experts_gib"], units["kv_tokens"], units["ceiling_tok_s"], units["kv_bytes_per_token"]) == (
        "GiB",
        "tokens",
        "tok/s",
        "B",
    )
    assert all(unit for name, unit in units.items() if name in wanted)


def test_an_emulated_plan_is_labelled(tmp_path: Path) -> None:
    tier = {"emulated_hbm_gib": 0.2, "emulated_link_gib_s": 2.0}
    receipt = planning.record_plan(tmp_path, "test", "mini", "cpu-2core", **tier)
    assert receipt.labels.emulated == "0.2 GiB HBM, link 2 GiB/s"
    real = planning.record_plan(tmp_path, "test", "mimo-v2.6-pro", "gb300", **tier)
    assert real.labels.emulated is None and "hbm_gib" not in real.parameters


def test_the_same_question_supersedes_however_it_is_put(tmp_path: Path) -> None:
    one = planning.record_plan(tmp_path, "test", "mini", "cpu-2core")
    two = planning.record_plan(tmp_path, "test", "mini", "cpu-2core", streams=1, context=8192, coverage=None)
    assert one.parameters == two.parameters
    assert two.supersedes == one.id  # its context was asked for, not assumed
