"""`lanelab ask` and `lanelab measure`: the contract of their answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from lanelab.cli.main import main


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main([*words, "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out.splitlines()[-1]), err


def test_ask_gives_every_field(fake: Any, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data, _ = answer(
        capsys, "ask", "hello", "--url", fake.url.removesuffix("/v1"), "--endpoint", "completions", "--max-tokens", "4",
        "--events",
    )  # fmt: skip
    assert code == 0
    assert (data["status"], data["text"], data["completion_tokens"], data["finish_reason"]) == (
        "ok",
        " 0 1 2 3",
        4,
        "length",
    )
    assert {"ttft_s", "first_answer_s", "last_token_s", "content_chunks", "max_gap_s", "decode_tok_s", "flags", "attempts",
            "reasoning", "tool_calls", "prompt_tokens"} <= set(data)  # fmt: skip
    assert data["events"][-1]["data"] == "[DONE]"


def test_ask_says_in_one_line_what_failed(fake: Any, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data, err = answer(capsys, "ask", "hello", "--url", fake.url)  # it has no chat route
    assert (code, data["status"], data["error_kind"]) == (1, "failed", "http_404")
    assert err == "error: http_404: no such route\n"
    code, data, err = answer(capsys, "ask", "hello", "--url", "http://127.0.0.1:1")
    assert (code, data["error"]["type"]) == (1, "LaneDown") and err.count("\n") == 1
    code, data, err = answer(capsys, "ask", "hello")
    assert (code, data["error"]["type"]) == (2, "UsageError") and "--lane" in err


def test_measure_prints_the_receipt(fake: Any, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["measure", "knee", "--lane", fake.url, "-p", "streams=[1, 2]", "-p", "repeats=1", "-p", "new_tokens=4"]
    code, data, err = answer(capsys, *words)
    assert code == 0 and data["state"] == "cold" and len(data["rows"]) == 2
    assert (lab / "receipts" / "knee" / f"{data['receipt']}.json").is_file()
    assert "knee 2/2: streams 2" in err


@pytest.mark.parametrize(
    ("extra", "code", "says"),
    [(["--preset", "quik"], 1, "did you mean 'quick'"), (["-p", "repeats"], 2, "NAME=VALUE"),
     (["-p", "repeats=none"], 2, "repeats"), (["-p", "repeat=1"], 1, "did you mean 'repeats'"),
     (["--campaign", "nowhere"], 1, "unknown campaign")],
)  # fmt: skip
def test_mistakes(extra: list[str], code: int, says: str, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    got, data, err = answer(capsys, "measure", "knee", "--lane", "http://127.0.0.1:1", *extra)
    assert got == code and says in data["error"]["message"]
    assert err.count("\n") == 1 and "Traceback" not in err
