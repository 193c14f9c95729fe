"""Secrets, hosts and home paths go; prose, digests and names stay."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lanelab.receipts import Receipt, Store, redact
from lanelab.receipts.redact import leaks, redact_text, redact_value

from .conftest import decode_row, made

INNOCENT = [
    "first token arrived at 0.512 s", "first token: 0.512345 s", "tokens: 123456", "token: 123456789", "password-free",
    "sha256:" + "a1" * 32, "hf-internal-testing/tiny-random-model", "hf_hub_download failed", "sk-learn-contrib-project",
    "basic authentication is required", "Bearer authentication failed", "secret: hot cells in HBM", "password: required",
    "eos_token=151643", "token='<|endoftext|>'", "max_tokens=128", "https://github.com/vllm-project/vllm/pull/58184",
    "git@github.com:owner/name.git", "http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "/rooted", "/home is full",
    "/mnt/home/shared/x", "api key: see the docs", "MiMo-V2.6-Pro", "num_tokens: 12", "tokenizer=Qwen/Qwen3-8B",
    "the lane is up at the station", "--max-num-seqs 8 --enforce-eager", "token_ids > per_chunk_usage", "10.0.1.2",
    "--api-key $API_KEY", "user@model", "gpt-oss-20b", "decode-20260922t225030z-1f2e3d4c", "risk-1234567890abcdef12",
    "https://huggingface.co/XiaomiMiMo/MiMo-V2.6-Pro", "~/models", "C1 28-72 tok/s", "docker://vllm/vllm-openai:v0.32.0",
]  # fmt: skip
LEAKS = [
    "hf_abcdefghijklmnopqrstuvwxyz", "sk-1234567890abcdef", "sk-proj-AbC123xyzAbC123xyz", "sk-ant-api03-AAAAbbbb1234-xyz",
    "api_key=hunter2", "API-KEY: hunter2", "--api-key hunter2", "--token abc", "password=x", "PGPASSWORD=hunter2",
    "Authorization: Bearer abcdef123456", "HF_TOKEN=foo", "http://bob:pw@db.example.com/x", "http://gpu-box:8000/v1",
    "http://10.1.2.3:80", "http://192.168.0.7/v1", "http://box.local:8000", "/home/bob/models", "C:\\Users\\bob\\x",
    "cd /root/x", "/root", "file:///home/bob/x", '{"api_key": "zzz"}', "token=abcd1234efgh5678", "/Users/bob",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.abc", "AKIAABCDEFGHIJKLMNOP", "https://x.com/?api_key=abc&y=1",
    "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "github_pat_11ABCDEFG0abcdefghijkl", "ghp_" + "a1" * 18,
]  # fmt: skip
SAID = re.compile(
    r"hunter2|abcdef|bob|zzz|efgh5678|=abc&|gpu-box|10\.1|192\.168|box\.local|/root|foo|AKIA|-----|AAAAbbbb|:pw@"
)


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_text_stays(text: str) -> None:
    assert redact_text(text) == text
    assert list(leaks({"a": [text, {"b": text}]})) == []


@pytest.mark.parametrize("text", LEAKS)
def test_leaks_go_once_and_for_all(text: str) -> None:
    clean = redact_text(text)
    assert clean != text and not SAID.search(clean), clean
    assert redact_text(clean) == clean
    assert redact_text(f"see ({text}), please") != f"see ({text}), please"


@given(st.text(max_size=60), st.sampled_from(LEAKS), st.text(max_size=60))
def test_redacting_twice_changes_nothing_more(before: str, leak: str, after: str) -> None:
    once = redact_text(f"{before} {leak} {after}")
    assert redact_text(once) == once


@given(st.lists(st.sampled_from(INNOCENT), min_size=1, max_size=6), st.sampled_from([" ", ", ", "\n", " | "]))
def test_innocent_texts_stay_innocent_together(parts: list[str], between: str) -> None:
    assume(not any(part.endswith((":", "=")) for part in parts))
    text = between.join(parts)
    assert redact_text(text) == text


@given(
    st.from_regex(r"[A-Za-z0-9_-]{20,40}", fullmatch=True),
    st.sampled_from(["password", "api_key", "hf_token", "client-secret"]),
)
def test_a_named_secret_goes_wherever_it_stands(secret: str, name: str) -> None:
    assume(
        not secret.startswith("-")
        and not re.match(r"(?i)null|none|true|false|unset|empty|redacted|required|optional|not", secret)
    )
    for value in ({name: secret}, [f"--{name}", secret], [f"{name}={secret}"], {"env": {name.upper(): secret}},
                  {"log": f'{{"{name}": "{secret}"}}'}, f"export {name.upper()}={secret};"):  # fmt: skip
        assert secret not in repr(redact_value(value)), value


def test_what_is_not_text_stays() -> None:
    value = {"a": [1, 2.5, None, True, {"token": "the", "tokens": [1]}], "api_key": None, "password": False, "b": {}}
    assert redact_value(value) == value


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Give this machine another name."""

    def give(name: str) -> None:
        monkeypatch.setattr(socket, "gethostname", lambda: name)
        monkeypatch.setattr(socket, "getfqdn", lambda: name)
        monkeypatch.setenv("HOSTNAME", name)
        redact._this_host.cache_clear()
        redact_text.cache_clear()

    yield give
    monkeypatch.undo()
    redact._this_host.cache_clear()
    redact_text.cache_clear()


def test_this_machines_name(named: Callable[[str], None]) -> None:
    named("lambda-7f3a-node01")
    assert redact_text("on lambda-7f3a-node01 and LAMBDA-7F3A-NODE01.") == "on <host> and <host>."
    assert redact_text("lambda-7f3a-node012") == "lambda-7f3a-node012"


@pytest.mark.parametrize("name", ["station", "model", "gb300", "decode", "a"])
def test_a_host_with_a_word_for_a_name(named: Callable[[str], None], name: str) -> None:
    named(name)
    prose = f"the {name} of mimo-{name} was warm, see {name}: {name}.yaml"
    assert redact_text(prose) == prose
    if len(name) > 1:
        assert redact_text(f"ssh me@{name} or {name}:8000") == "ssh me@<host> or <host>:8000"


def test_a_written_receipt_has_no_leak_also_in_its_rows(campaign_dir: Path) -> None:
    secret = "hf_" + "q" * 30
    given_receipt = made(
        "decode-a", rows=[decode_row(error_kind=f"401 for {secret}", flags=["/home/alice/x"])],
        parameters={"url": "http://u:p@h.example.com", "/home/alice": 1}, machine="gb300",
        environment={"client": {"home": "/root/lab"}, "server": {"args": ["--api-key", secret], "hf_token": secret}},
    )  # fmt: skip
    written = Store(campaign_dir).write(given_receipt)
    content = (campaign_dir / "receipts" / "decode" / "decode-a.json").read_text()
    for leak in (secret, "alice", "/root", "u:p@"):
        assert leak not in content
    assert isinstance(written, Receipt) and list(leaks(written.body())) == []
    assert (written.machine, written.id, written.rows[0]["flags"]) == ("gb300", "decode-a", ["~/x"])  # type: ignore[index]
