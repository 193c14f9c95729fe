"""`lanelab query` and `lanelab verify` as people and scripts call them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lanelab.cli.main import main
from lanelab.receipts import Receipt


@pytest.fixture(autouse=True)
def lab(campaign_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab of the test's campaign."""
    monkeypatch.setenv("LANELAB_ROOT", str(campaign_dir.parents[2]))


def last_json(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    value = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(value, dict)
    return value


def test_query(write: Callable[..., Receipt], capsys: pytest.CaptureFixture[str]) -> None:
    write("decode-a")
    assert main(["query", "SELECT size, ttft_s FROM decode", "--json"]) == 0
    assert last_json(capsys)["rows"] == [{"size": "3K", "ttft_s": 0.75}]
    assert main(["query", "SELECT size, ttft_s FROM decode"]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["3K", "0.75"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["query", "SELEC 1"], 2, "SELEC"),
        (["query", "SELECT nope FROM decode"], 2, "nope"),
        (["query", "SELECT 1", "-c", "cmap"], 1, "did you mean 'camp'"),
        (["query", "DROP VIEW decode"], 2, "DROP"),
        (["query"], 2, "SQL"),
        (["verify", "cmap"], 1, "did you mean 'camp'"),
        (["verify", "../camp"], 1, "unknown campaign"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and words in said.err
    assert main([*arguments, "--json"]) == code
    assert "error" in last_json(capsys)


def test_verify_names_the_file(
    write: Callable[..., Receipt], campaign_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("decode-a")
    assert main(["verify", "camp"]) == 0 and "1 receipt of camp: whole" in capsys.readouterr().out
    path = campaign_dir / "receipts" / "decode" / "decode-a.json"
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["verify"]) == 1
    assert str(path) in capsys.readouterr().out
    assert main(["verify", "--json"]) == 1
    found = last_json(capsys)
    assert found["ok"] is False and str(path) in json.dumps(found["problems"])


def one_line(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> str:
    """What it says on stderr; it must be one line, with nothing on stdout."""
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    return said.err


def test_a_query_ends_at_its_time_limit(capsys: pytest.CaptureFixture[str]) -> None:
    endless = "SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)"
    began = time.monotonic()
    assert "0.3 s" in one_line(["query", endless, "--timeout-s", "0.3"], 1, capsys)
    assert time.monotonic() - began < 10
    for value in ("nan", "inf", "0"):
        assert "--timeout-s" in one_line(["query", "SELECT 1", "--timeout-s", value], 2, capsys)


@pytest.mark.parametrize(
    ("sql", "cut"),
    [("SELECT range(3000000) x", 1), ("SELECT [range(3000000)] x", 1), ("SELECT repeat('x', 3000000) x", 1),
     ("SELECT {'a': range(3000000)} x", 1), ("SELECT [1, 2] x; -- two", 0), ("SELECT {'a': 1} x;", 0)],
)  # fmt: skip
def test_a_cell_too_long_is_cut_and_counted(sql: str, cut: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", sql, "--json"]) == 0
    out = capsys.readouterr().out
    assert len(out) < 30_000 and json.loads(out).get("cells_cut", 0) == cut
    assert isinstance(json.loads(out)["rows"][0]["x"], str) == bool(cut)


def test_rows_beyond_the_limit_are_counted_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["query", "SELECT i FROM range(5000) t(i) ORDER BY i DESC", "--rows-max", "10"]
    assert main([*words, "--json"]) == 0
    found = last_json(capsys)
    assert found["rows"] == [{"i": 4999 - at} for at in range(10)]
    assert (found["count"], found["rows_left_out"]) == (10, 4990)
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "(10 rows, 4,990 more left out)"


def test_a_run_that_no_campaign_has_is_refused(
    write: Callable[..., Receipt], campaign_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("decode-a")
    assert "unknown run" in one_line(["query", "SELECT 1", "--run", "nope"], 1, capsys)
    record = campaign_dir / "runs" / "04-decode" / "run-1" / "run.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"status": "ok", "receipts": []}')
    assert "run-1" in one_line(["query", "SELECT 1", "--run", "run-2"], 1, capsys)
    assert main(["query", "SELECT 1", "--run", "run-1"]) == 0


def test_verify_takes_no_empty_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "empty" in one_line(["verify", ""], 2, capsys)


def test_a_wide_table_fits_the_terminal(
    write: Callable[..., Receipt], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("decode-a")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["query", "SELECT * FROM receipts"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100 and "…" in lines[0]
    assert main(["query", "SELECT * FROM receipts", "--json"]) == 0
    assert "…" not in capsys.readouterr().out
