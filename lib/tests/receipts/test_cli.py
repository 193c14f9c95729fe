"""`lanelab query` and `lanelab verify` as people and scripts call them."""

from __future__ import annotations

import json
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
