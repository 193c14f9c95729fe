"""Any changed byte shows, whatever is wrong is one line that names the file, and nothing raises."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanelab.receipts import Receipt, Store, store, verify
from lanelab.receipts.canonical import canonical_bytes, digest_of

from .conftest import decode_row, made

Write = Callable[..., Receipt]


def errors(campaign_dir: Path) -> list[verify.Problem]:
    return [problem for problem in verify.campaign(campaign_dir) if problem.severity == "error"]


def forge(path: Path, **changes: object) -> None:
    """Rewrite a receipt as somebody would who computes the digest anew."""
    value = {**json.loads(path.read_bytes()), **changes}
    path.write_bytes(canonical_bytes({**value, "digest": digest_of(value)}) + b"\n")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with rows in JSON, with odd numbers and letters, and with rows in Parquet."""
    folder = tmp_path_factory.mktemp("verify") / "camp"
    rows = [decode_row(ttft_s=value, error_kind='schön \u2028 \U0001f600 \\ " \n') for value in (1e-7, 1e16, 0.1, 3.0)]
    Store(folder).write(made("decode-json", rows=rows, parameters={"z": 1e21, "é": [], "a": {}}))
    Store(folder).write(made("decode-none", rows=[]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "INLINE_LIMIT_BYTES", 10)
        Store(folder).write(made("decode-parquet", rows=[decode_row(repeat=number) for number in range(20)]))
    assert verify.campaign(folder) == []
    return folder


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_flipped_byte_shows(filled: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(path for path in filled.rglob("*") if path.is_file())))
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    changed = bytearray(content)
    changed[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(changed))
    try:
        found = errors(filled)
    finally:
        path.write_bytes(content)
    assert any(path.name in str(problem) for problem in found), (path, at)


def test_every_byte_of_a_receipt_counts(filled: Path) -> None:
    path = filled / "receipts" / "decode" / "decode-none.json"
    content = path.read_bytes()
    for at in range(len(content)):
        for flip in (0x01, 0x20):  # the next letter, the other case
            path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
            problems, _ = verify.receipt(path, "camp")
            assert problems, (at, content[at : at + 1])
    path.write_bytes(content)


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content[:-1], lambda content: content + b"\n", lambda content: content[:-1] + b"\r\n",
        lambda content: b" " + content, lambda content: content.replace(b",", b", ", 1),
        lambda content: content.replace(b'"boot"', b'"\\u0062oot"', 1), lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"decode_tok_s":32.5', b'"decode_tok_s":32.50', 1),
        lambda content: content.replace(b'"streams":1', b'"streams":1.0', 1),
        lambda content: content.replace(b'"streams":1', b'"streams":1e0', 1),
        lambda content: content.replace(b'"stream":0', b'"stream":-0', 1),
        lambda content: content.replace(b'{"', b'{"boot":null,"', 1),
        lambda content: b"", lambda content: b"\x00" * 100, lambda content: b"\x7fELF\xff\xfe", lambda content: b"null\n",
        lambda content: b"[" * 100_000, lambda content: b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n",
        lambda content: b'{"id":' + b"9" * 6000 + b"}\n", lambda content: b'{"schema":NaN}\n',
        lambda content: b'{"id":"\\ud800"}\n', lambda content: b"\xef\xbb\xbf" + content,
    ],
)  # fmt: skip
def test_an_edited_or_unreadable_receipt_is_one_line(
    write: Write, campaign_dir: Path, edit: Callable[[bytes], bytes]
) -> None:
    write("decode-a")
    path = campaign_dir / "receipts" / "decode" / "decode-a.json"
    content = edit(path.read_bytes())
    assert content != path.read_bytes()
    path.write_bytes(content)
    found = errors(campaign_dir)
    assert found and all(problem.path == path and "\n" not in str(problem) for problem in found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_receipt_without_permission(write: Write, campaign_dir: Path) -> None:
    write("decode-a")
    (campaign_dir / "receipts" / "decode" / "decode-a.json").chmod(0)
    assert "cannot be read" in str(errors(campaign_dir)[0])


def test_a_folder_in_a_receipts_place(campaign_dir: Path) -> None:
    (campaign_dir / "receipts" / "decode" / "decode-a.json").mkdir(parents=True)
    assert "cannot be read" in str(errors(campaign_dir)[0])


@pytest.mark.parametrize(
    ("changes", "what", "words"),
    [
        ({"schema": "lanelab/receipt/9"}, "schema", "lanelab/receipt/9"),
        ({"kind": "dream"}, "kind", "'dream' is not known"),
        ({"kind_version": 99}, "kind", "version 99 is newer"),
        ({"id": "decode-b"}, "id", "decode-b"),
        ({"campaign": "elsewhere"}, "campaign", "elsewhere"),
        ({"surprise": 1}, "schema", "surprise"),
        ({"origin": "guessed"}, "schema", "origin"),
        ({"rows": [{**decode_row(), "ttft_s": "slow"}]}, "rows", "row 0: field ttft_s"),
        ({"rows": {"name": "decode-a.parquet", "count": 1, "sha256": "0" * 64}}, "parquet", "cannot be read"),
        ({"rows": {"name": "../../x.parquet", "count": 1, "sha256": "0" * 64}}, "schema", "rows"),
        ({"supersedes": "decode-gone"}, "supersedes", "decode-gone"),
        ({"source": {"path": "/home/alice/lab"}}, "leak", "source.path holds a home path"),
        ({"environment": {"server": {"args": ["--api-key", "hunter2"]}}}, "leak", "holds a secret"),
        ({"digest": None}, "digest", ""),
    ],
)  # fmt: skip
def test_a_well_made_forgery_is_still_held_to_the_rules(
    write: Write, campaign_dir: Path, changes: dict[str, object], what: str, words: str
) -> None:
    write("decode-a")
    path = campaign_dir / "receipts" / "decode" / "decode-a.json"
    if "digest" in changes:
        value = json.loads(path.read_bytes())
        path.write_bytes(canonical_bytes({**value, **changes}) + b"\n")
    else:
        forge(path, **changes)
    found = errors(campaign_dir)
    assert any(problem.what == what and words in problem.message for problem in found), [str(one) for one in found]


def test_parquet_is_held_by_hash_count_and_model(filled: Path, tmp_path: Path) -> None:
    path = filled / "receipts" / "decode" / "decode-parquet.json"
    beside, content, original = (
        path.with_suffix(".parquet"),
        path.read_bytes(),
        path.with_suffix(".parquet").read_bytes(),
    )
    try:
        forge(path, rows={**json.loads(content)["rows"], "count": 19})
        assert "holds 20 rows" in str(errors(filled)[0])
        path.write_bytes(content)
        beside.write_bytes(b"PAR1 not really")
        assert "sha256" in str(errors(filled)[0])
        forge(path, rows={"name": beside.name, "count": 20, "sha256": hashlib.sha256(beside.read_bytes()).hexdigest()})
        assert "does not hold the rows" in str(errors(filled)[0])
        beside.unlink()
        assert "cannot be read" in str(errors(filled)[0])
    finally:
        path.write_bytes(content)
        beside.write_bytes(original)


def test_strays_fail_and_leftovers_of_a_crash_are_said(write: Write, campaign_dir: Path) -> None:
    write("decode-a")
    folder = campaign_dir / "receipts" / "decode"
    (folder / ".decode-b.json.0a1b2c3d.tmp").write_bytes(b"half")
    (folder / "decode-c.parquet").write_bytes(b"rows of a receipt that never came")
    assert [problem.severity for problem in verify.campaign(campaign_dir)] == ["note", "note"]
    assert verify.campaigns([campaign_dir]).exit_code == 0
    (folder / "notes.txt").write_text("mine")
    (folder.parent / "loose.json").write_text("{}")
    assert [problem.what for problem in errors(campaign_dir)] == ["stray", "stray"]


def test_one_id_in_two_kinds(write: Write, campaign_dir: Path) -> None:
    write("same-id")
    write("same-id", kind="knee", rows=[])
    assert "stands twice" in str(errors(campaign_dir)[0])


def ended_run(campaign_dir: Path, **changes: object) -> Path:
    """The record of a run that ended well, with one file; `changes` are made before its digest."""
    folder = campaign_dir / "runs" / "04-decode" / "r1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notebook.ipynb").write_text("{}")
    value: dict[str, object] = {
        "schema": "lanelab/run/1", "id": "r1", "status": "ok", "cause": None, "reason": None, "campaign": "camp",
        "step": "04-decode", "lane": "mini", "kernel": "python3", "notebook": "04-decode.ipynb", "notebook_sha256": "0",
        "parameters": {}, "measures": [], "started": "2026-09-22T22:50:30Z", "finished": "2026-09-22T22:51:30Z",
        "seconds": 60.0, "limits": {}, "cells": {}, "cell_seconds": {}, "receipts": [], "versions": {},
        "files": {"notebook.ipynb": hashlib.sha256(b"{}").hexdigest()}, "ended_processes": [], "warnings": [],
        "runner": None, **changes,
    }  # fmt: skip
    path = folder / "run.json"
    path.write_text(json.dumps({**value, "digest": digest_of(value)}, indent=1))
    return path


def only(campaign_dir: Path) -> str:
    found = errors(campaign_dir)
    assert len(found) == 1 and "\n" not in str(found[0]), [str(one) for one in found]
    return str(found[0])


def test_a_changed_file_of_a_run(campaign_dir: Path) -> None:
    path = ended_run(campaign_dir)
    assert verify.campaign(campaign_dir) == []
    (path.parent / "notebook.ipynb").write_text("{ }")
    assert "was changed" in only(campaign_dir)
    (path.parent / "notebook.ipynb").unlink()
    assert "cannot be read" in only(campaign_dir)
    ended_run(campaign_dir)
    (path.parent / "extra.txt").write_text("mine")
    assert "extra.txt: was put into the folder" in only(campaign_dir)
    (path.parent / "extra.txt").unlink()
    notebook = hashlib.sha256(b"{}").hexdigest()
    ended_run(campaign_dir, files={"notebook.ipynb": notebook, "../../../x": "00"})
    assert "not in its folder" in only(campaign_dir)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff", "not a run's record"), (b"[]", "must be an object, not list"), (b"{}", "field schema is missing"),
        (b'{"files":[1]}', "field schema is missing"), (b"[" * 100_000, "nested too deeply"), (b"", "not a run's record"),
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_told_once(campaign_dir: Path, content: bytes, words: str) -> None:
    from lanelab.receipts import views

    verify.also("views", lambda folder: views.open([folder]) and [])  # a check that reads the records too, and raises
    try:
        ended_run(campaign_dir).write_bytes(content)
        assert words in only(campaign_dir)
    finally:
        verify._CHECKS.pop("views")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"surprise": 1}, "'surprise' is not one"), ({"files": [1]}, "field files"), ({"status": "great"}, "'great'"),
        ({"schema": "lanelab/run/9"}, "lanelab/run/9"), ({"seconds": True}, "field seconds"), ({"id": "r2"}, "'r2'"),
        ({"finished": None}, "field finished"), ({"receipts": [1]}, "field receipts"), ({"campaign": "x"}, "'x'"),
        ({"status": "failed"}, "gives no reason"), ({"cells": {"not_executed": ["a"]}}, "did not run"),
        ({"receipts": ["decode-lost"]}, "'decode-lost', which has no file"),
    ],
)  # fmt: skip
def test_a_record_is_held_to_its_form(campaign_dir: Path, changes: dict[str, object], words: str) -> None:
    ended_run(campaign_dir, **changes)
    assert words in only(campaign_dir)


def test_an_edited_record_shows_and_an_older_one_is_noted(campaign_dir: Path) -> None:
    path = ended_run(campaign_dir)
    value = json.loads(path.read_bytes())
    path.write_text(json.dumps({**value, "status": "failed"}))
    assert "gives no reason" in only(campaign_dir)
    path.write_text(json.dumps({**value, "status": "failed", "reason": "mine"}))
    assert "digest" in only(campaign_dir)
    path.write_text(json.dumps({name: item for name, item in value.items() if name != "digest"}))
    found = verify.campaign(campaign_dir)
    assert [(problem.what, problem.severity) for problem in found] == [("digest", "note")]


def test_a_lost_record_and_a_lost_receipt(write: Write, campaign_dir: Path) -> None:
    path = ended_run(campaign_dir, receipts=["decode-a"])
    write("decode-a", run="r1")
    assert errors(campaign_dir) == []
    receipt = campaign_dir / "receipts" / "decode" / "decode-a.json"
    content = receipt.read_bytes()
    receipt.unlink()
    assert "lists the receipt 'decode-a', which has no file" in only(campaign_dir)
    receipt.write_bytes(content)
    path.unlink()
    assert [problem.path for problem in errors(campaign_dir)] == [receipt], "its folder is a note"
    (path.parent / "notebook.ipynb").unlink()
    path.parent.rmdir()
    assert "was measured in run r1, which has no record" in only(campaign_dir)


def test_other_rooms_add_their_checks(campaign_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_CHECKS", {})
    verify.also("facts", lambda folder: [verify.Problem(folder / "facts.yaml", "facts", "names no receipt")])
    assert [problem.what for problem in verify.campaign(campaign_dir)] == ["facts"]
    assert verify.campaign(campaign_dir, extra=False) == []
