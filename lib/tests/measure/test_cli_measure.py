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


@pytest.mark.parametrize("url", ["", "ftp://x", "http://[::1", "http://a b/", "http://", "http://x:99999"])
def test_ask_takes_no_url_that_is_none(url: str, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data, err = answer(capsys, "ask", "hello", "--url", url)
    assert (code, data["error"]["type"]) == (2, "BadUrl") and err.count("\n") == 1


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize("option", ["--timeout-s", "--idle-s"])
def test_ask_takes_no_limit_that_is_none(
    option: str, value: str, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, data, _ = answer(capsys, "ask", "hello", "--url", "http://127.0.0.1:1", option, value)
    assert (code, data["error"]["type"]) == (2, "UsageError") and option in data["error"]["message"]


def test_ask_fails_without_a_token_and_at_its_time_limit(
    fake: Any, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ask", "hello", "--url", fake.url, "--endpoint", "completions", "--max-tokens", "4"]
    fake.requests.append({})
    fake.garbage = ['{"usage":{"completion_tokens":"zz"}}', "[DONE]"]
    code, data, err = answer(capsys, *words)
    assert (code, data["status"], data["error_kind"]) == (1, "failed", "no_tokens") and err.count("\n") == 1
    fake.garbage, fake.first_s = [], 1.0
    code, data, _ = answer(capsys, *words, "--timeout-s", "0.2")
    assert (code, data["error_kind"]) == (1, "timeout")


def test_ask_says_in_words_what_the_lane_and_the_flags_mean(
    fake: Any, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lab.parents[1] / "lanes"
    (folder / "toy.yaml").write_text(f"name: toy\nkind: attach\nurl: {fake.url}\nsays: its text means nothing\n")
    fake.requests.append({})
    fake.garbage = ['{"choices":[{"text":"a"}]}', '{"choices":[{"text":"b","finish_reason":"length"}]}',
                    '{"choices":[],"usage":{"completion_tokens":4}}', "[DONE]"]  # fmt: skip
    assert main(["ask", "hello", "--lane", "toy", "--endpoint", "completions"]) == 0
    out = capsys.readouterr().out
    assert out.count("its text means nothing") == 1
    assert "tokens of the first chunk assumed to be one" in out and "first_chunk_tokens_assumed" not in out
