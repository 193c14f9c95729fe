"""The hostile streams of shared/cases, replayed byte for byte on their nominal clock."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lanelab.lane.stream import request

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
CASES = SHARED / "cases" / "streams" / "cases.jsonl"
REPLAY = SHARED / "tools" / "stream-replay" / "replay.py"
FLAGS = {
    "usage_missing", "no_done", "no_finish_reason", "unterminated_last_event", "first_chunk_multi_token",
    "first_chunk_tokens_assumed",
}  # fmt: skip
TOLERANCE_S = 0.02

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CASES.is_file(), reason="../shared/cases is not here")]


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, str(REPLAY), str(CASES)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{json.loads(server.stdout.readline())['port']}/case"
        request(f"{url}/plain-chat/v1", prompt="throw-away", model="replay")
        yield url
    finally:
        server.terminate()
        server.wait(10)


def close(field: str, wanted: Any, got: Any, window_s: float) -> bool:
    if wanted is None or got is None:
        return wanted is None and got is None
    if field == "decode_tok_s":
        tokens = wanted * window_s
        return bool(tokens / (window_s + TOLERANCE_S) <= got and got * max(window_s - TOLERANCE_S, 0) <= tokens)
    return bool(abs(wanted - got) <= TOLERANCE_S)


def wrong(expect: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """The fields in which a result differs from its expectation."""
    window_s = (expect.get("last_token_s") or 0) - (expect.get("ttft_s") or 0)
    found = []
    for field, wanted in expect.items():
        if field == "attempts_max":
            good = len(got["attempts"]) <= wanted
        elif field == "retry_wait_s":
            good = got["retry_wait_s"] is not None and got["retry_wait_s"] >= wanted
        elif field == "flags":
            good = set(got["flags"]) & FLAGS == set(wanted)
        elif field.endswith("_s"):
            good = close(field, wanted, got[field], window_s)
        else:
            good = got.get(field) == wanted
        if not good:
            found.append(f"{field}: wanted {wanted!r}, got {got.get(field)!r}")
    return found


@pytest.mark.parametrize(
    "case", [json.loads(line) for line in CASES.open()] if CASES.is_file() else [], ids=lambda case: case["name"]
)
def test_case(base: str, case: dict[str, Any]) -> None:
    for _ in range(3):  # a send that the busy machine made late is played again
        result = request(f"{base}/{case['name']}/v1", endpoint=case["endpoint"], prompt="hi", model="replay")
        found = wrong(case["expect"], result.summary())
        late = max(lateness(case, httpx.get(f"{base}/{case['name']}/sent").json()), default=0.0)
        if not found or late < 0.005:
            break
    assert not found
    if "tokens_estimated" in result.flags:
        assert "usage_missing" in result.flags


def lateness(case: dict[str, Any], sent: list[list[float]]) -> list[float]:
    nominal, at_s = [], case.get("head_delay_s", 0.0)
    for delay_s, payload in case["sends"]:
        at_s += delay_s
        if payload:
            nominal.append(at_s)
    return [real[0] - planned for real, planned in zip(sent, nominal, strict=False)]
