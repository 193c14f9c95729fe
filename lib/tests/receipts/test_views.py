"""The views hold what counts, with the types of the row models, and SQL can do nothing but read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanelab.errors import BadFile
from lanelab.receipts import Receipt, Store, store, views
from lanelab.receipts.kinds import ENVELOPE, load_all

from .conftest import decode_row, made

Write = Callable[..., Receipt]


def ids(campaign_dir: Path, view: str = "decode", current_run: str | None = None, **how: Any) -> list[str]:
    table = views.ask(campaign_dir, f"SELECT DISTINCT receipt FROM {view} ORDER BY 1", current_run, **how)
    return [row[0] for row in table.rows]


def run(campaign_dir: Path, name: str, status: str, started: str, receipts: list[str] | None = None) -> None:
    folder = campaign_dir / "runs" / "04-decode" / name
    folder.mkdir(parents=True)
    record = {"status": status, "started": started, "receipts": receipts or []}
    (folder / "run.json").write_text(json.dumps(record))


def test_a_kind_without_receipts_is_an_empty_view_with_its_columns(campaign_dir: Path) -> None:
    connection = views.open(campaign_dir)
    for its_kind in load_all().values():
        for view in (its_kind.view, f"{its_kind.view}_all"):
            result = connection.execute(f"SELECT * FROM {view}")
            names = [column[0] for column in result.description]
            assert names == [*ENVELOPE, *its_kind.row.model_fields], view
            assert result.fetchall() == []


def test_columns_have_the_types_of_the_row_model(write: Write, campaign_dir: Path) -> None:
    write("decode-a", rows=[decode_row(flags=["late", "retry"], ttft_s=1.0, prompt_tokens=None)],
          parameters={"preset": "quick", "rows": [{"a": 1}]}, machine="m1")  # fmt: skip
    table = views.ask(campaign_dir, "SELECT * FROM decode")
    row = dict(zip(table.columns, table.rows[0], strict=True))
    types = dict(zip(table.columns, table.types, strict=True))
    assert (types["ttft_s"], types["streams"], types["flags"]) == ("DOUBLE", "BIGINT", "VARCHAR[]")
    assert (types["started"], types["parameters"]) == ("TIMESTAMP", "JSON")
    assert row["ttft_s"] == 1.0 and isinstance(row["ttft_s"], float)
    assert row["prompt_tokens"] is None and row["flags"] == ["late", "retry"] and row["machine"] == "m1"
    assert json.loads(row["parameters"]) == {"preset": "quick", "rows": [{"a": 1}]}
    assert views.ask(campaign_dir, "SELECT parameters->>'preset' FROM decode").rows == [("quick",)]


def test_rows_in_parquet_read_like_rows_in_json(
    campaign_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [decode_row(repeat=number, flags=["x"] * (number % 3), ttft_s=None if number % 5 else number / 7)
            for number in range(60)]  # fmt: skip
    Store(campaign_dir).write(made("decode-json", rows=rows))
    monkeypatch.setattr(store, "INLINE_LIMIT_BYTES", 100)
    Store(campaign_dir).write(made("decode-parquet", rows=rows))
    assert (campaign_dir / "receipts/decode/decode-parquet.parquet").is_file()
    fields = 'size, repeat, flags, ttft_s, error_kind, decode_tok_s, "row"'
    query = "SELECT {} FROM decode WHERE receipt = '{}' ORDER BY \"row\""
    as_json = views.ask(campaign_dir, query.format(fields, "decode-json"))
    as_parquet = views.ask(campaign_dir, query.format(fields, "decode-parquet"))
    assert as_json == as_parquet and len(as_json.rows) == 60
    back = Store(campaign_dir)
    assert back.rows(back.read("decode-json")) == back.rows(back.read("decode-parquet"))


def test_asking_for_few_fields_gives_what_the_whole_gives(write: Write, campaign_dir: Path) -> None:
    for number in range(4):
        write(f"decode-{number}", number, rows=[decode_row(repeat=at, ttft_s=at / 3 + number) for at in range(number)])
    whole = views.open(campaign_dir)
    for query in (
        "SELECT count(*) FROM decode",
        "SELECT size, median(ttft_s) FROM decode GROUP BY ALL",
        'SELECT receipt, max("row") FROM decode GROUP BY 1 ORDER BY 1',
        'SELECT d FROM decode d ORDER BY receipt, "row"',
        "FROM decode SELECT max(COLUMNS('.*_s'))",
        "WITH a AS (FROM decode) SELECT count(*) FROM a NATURAL JOIN decode b",
        "SELECT count(*) FROM decode, knee",
        "SELECT (SELECT max(ttft_s) FROM decode_all), count(*) FROM receipts",
        "SELECT sum(ttft_s) FROM query_table('dec' || 'ode')",
        "SELECT a.receipt FROM decode a SEMI JOIN decode b ON a.ttft_s = b.repeat ORDER BY 1",
    ):
        assert views.ask(campaign_dir, query).rows == views.answer(whole, query).rows, query


def test_runs(write: Write, campaign_dir: Path) -> None:
    run(campaign_dir, "r1", "ok", "2026-09-01T00:00:00Z")
    run(campaign_dir, "r2", "ok", "2026-09-02T00:00:00Z")
    run(campaign_dir, "r3", "failed", "2026-09-03T00:00:00Z")
    run(campaign_dir, "r4", "ok", "2026-09-04T00:00:00Z")  # a new rendering: it made nothing
    for name in ("r1", "r2", "r3", "r5"):
        write(f"decode-{name}", run=name)
    write("decode-none")
    assert ids(campaign_dir) == ["decode-none", "decode-r2"]
    assert ids(campaign_dir, current_run="r5") == ["decode-none", "decode-r5"]  # in place of its step's latest
    assert ids(campaign_dir, current_run="r6") == ["decode-none", "decode-r2"]  # has made nothing yet
    assert len(ids(campaign_dir, "decode_all")) == 5


def test_the_environment_names_the_current_run(
    write: Write, campaign_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("decode-now", run="r9")
    assert ids(campaign_dir) == []
    monkeypatch.setenv("LANELAB_RUN", "r9")
    assert ids(campaign_dir) == ["decode-now"]


def test_a_good_run_counts_receipts_that_it_used_again(write: Write, campaign_dir: Path) -> None:
    run(campaign_dir, "r1", "died", "2026-09-01T00:00:00Z")
    run(campaign_dir, "r2", "ok", "2026-09-02T00:00:00Z", ["decode-1"])
    write("decode-1", run="r1")
    assert ids(campaign_dir) == ["decode-1"]


def test_steps_and_campaigns_are_apart(write: Write, campaign_dir: Path) -> None:
    other = campaign_dir.with_name("other")
    run(campaign_dir, "r1", "ok", "2026-09-01T00:00:00Z")
    run(other, "r2", "ok", "2026-09-02T00:00:00Z")
    write("decode-1", run="r1")
    Store(other).write(made("decode-2", run="r2", campaign="other"))
    # the same id in another campaign is another receipt, and its retraction stays at home
    Store(other).write(made("decode-1", campaign="other"))
    Store(other).write(made("retraction-1", kind="retraction", campaign="other",
                            rows=[{"retracts": "decode-1", "reason": "wrong preset"}]))  # fmt: skip
    table = views.ask([campaign_dir, other], "SELECT campaign, receipt FROM decode ORDER BY ALL")
    assert table.rows == [("camp", "decode-1"), ("other", "decode-2")]


def test_superseded_and_retracted(write: Write, campaign_dir: Path) -> None:
    run(campaign_dir, "bad", "failed", "2026-09-01T00:00:00Z")
    write("decode-old")
    write("decode-new", 1, supersedes="decode-old")
    write("decode-kept", 2)
    write("decode-failed", 3, supersedes="decode-kept", run="bad")  # a failed run supersedes nothing
    write("decode-taken", 4)
    for name, target in (
        ("retraction-1", "decode-taken"),
        ("retraction-2", "decode-new"),
        ("retraction-3", "retraction-2"),
    ):
        write(name, 5, kind="retraction", rows=[{"retracts": target, "reason": "r"}])
    assert ids(campaign_dir) == ["decode-kept", "decode-new"]
    told = views.ask(
        campaign_dir, "SELECT receipt, superseded_by, retracted_by FROM receipts WHERE NOT counts ORDER BY 1"
    )
    assert told.rows == [
        ("decode-failed", None, None), ("decode-old", "decode-new", None), ("decode-taken", None, "retraction-1"),
        ("retraction-2", None, "retraction-3"),
    ]  # fmt: skip


def test_private_receipts_are_left_out(write: Write, campaign_dir: Path) -> None:
    write("decode-open")
    write("decode-private", visibility="private", supersedes="decode-open")
    assert ids(campaign_dir) == [] and ids(campaign_dir, "decode_all") == ["decode-open"]
    assert ids(campaign_dir, private=True) == ["decode-private"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{0}')", "SELECT * FROM read_csv('{0}')", "SELECT * FROM '{0}'",
        "SELECT * FROM read_blob('/etc/passwd')", "SELECT * FROM glob('/*')", "COPY decode TO '{1}'",
        "COPY (SELECT 1) TO '{1}' (FORMAT parquet)", "EXPORT DATABASE '{1}'", "ATTACH '{1}'", "INSTALL httpfs",
        "LOAD httpfs", "SET enable_external_access = true", "PRAGMA enable_profiling", "CREATE TABLE t AS SELECT 1",
        "DROP VIEW decode", "SELECT 1; SELECT 2", "", ";", "-- nothing", "SELEC 1", "SELECT nope FROM decode",
        "SELECT * FROM nowhere", "SELECT getenv('HOME')", "SELECT * FROM range(10000000000) ORDER BY 1",
        "SELECT 'a' + 1 FROM decode", "INSERT INTO decode SELECT * FROM decode", "CALL pragma_version()",
        "EXPLAIN ANALYZE SELECT 1", "SELECT * FROM decode WHERE ttft_s = ?", "SELECT error('x') FROM decode",
        "SELECT * FROM sniff_csv('{0}')", "SELECT * FROM parquet_metadata('{0}')", "USE memory.store",
    ],
)  # fmt: skip
def test_sql_reads_views_and_nothing_else(
    write: Write, campaign_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(views, "MEMORY_LIMIT", "64MB")
    receipt = write("decode-a")
    target = tmp_path / "written"
    secret = campaign_dir / "receipts" / "decode" / f"{receipt.id}.json"
    with pytest.raises(views.BadQuery) as refused:
        views.ask(campaign_dir, query.format(secret, target))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 600
    assert not target.exists()


def test_an_open_connection_is_locked_too(campaign_dir: Path, tmp_path: Path) -> None:
    connection = views.open(campaign_dir)
    for statement in (f"COPY (SELECT 1) TO '{tmp_path}/x.csv'", "SET enable_external_access = true",
                      "SET lock_configuration = false", "SELECT * FROM read_text('/etc/passwd')"):  # fmt: skip
        with pytest.raises(Exception, match=r"disabled|locked|Cannot"):
            connection.execute(statement)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe\x00", b"[]", b"null", b'{"id":"a"}', b"[" * 200_000, b'{"id":' + b"9" * 5000 + b"}",
     b'{"id":"decode-x","kind":"decode","campaign":"c","origin":"measured","rows":[{"streams":"many"}]}',
     b'{"id":"decode-x","kind":"knee","campaign":"c","origin":"measured","rows":[]}',
     b'{"id":"decode-x","kind":"decode","campaign":"c","origin":"measured","rows":[],"started":"soon"}',
     b'{"id":"decode-x","kind":"decode","campaign":"c","origin":"measured",'
     b'"rows":{"name":"../../../x.parquet","count":1,"sha256":"00"}}'],
)  # fmt: skip
def test_an_unreadable_receipt_is_named_in_one_line(write: Write, campaign_dir: Path, content: bytes) -> None:
    write("decode-a")
    bad = campaign_dir / "receipts" / "decode" / "decode-x.json"
    bad.write_bytes(content)
    with pytest.raises(BadFile) as refused:
        views.ask(campaign_dir, "SELECT count(streams), max(started) FROM decode")
    assert str(bad) in str(refused.value) and "\n" not in str(refused.value)


def test_the_answer_as_text_and_as_data(write: Write, campaign_dir: Path) -> None:
    write("decode-a")
    table = views.ask(
        campaign_dir, "SELECT size, started, 1.5::DECIMAL(4,1) AS d, 1 AS x, 2 AS x, NULL AS n FROM decode"
    )
    data = table.to_data()
    assert data["columns"] == ["size", "started", "d", "x", "x:1", "n"]
    assert data["rows"] == [{"size": "3K", "started": "2026-09-22T22:50:30Z", "d": 1.5, "x": 1, "x:1": 2, "n": None}]
    assert json.dumps(data)
    assert table.to_text().splitlines()[-1] == "(1 row)" and "null" in table.to_text()
