"""Facts: one value, its proof, and one-line errors that name fact, file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanelab.errors import BadFile, NotFound
from lanelab.publish.facts import Facts, NothingMeasured, evaluate, evaluated
from lanelab.publish.ledger import BrokenReceipt
from lanelab.publish.provenance import fact_link
from lanelab.publish.reader import Reader

SHORT = """\
# the campaign's numbers
speed:
  from: {kind: decode, where: {size: 1K, status: ok}, value: decode_tok_s, stat: STAT}
  digits: 1
  says: decode speed
"""


@pytest.mark.parametrize(
    ("stat", "text"),
    [("median", "31.0 tok/s"), ("mean", "34.0 tok/s"), ("min", "30.0 tok/s"), ("max", "41.0 tok/s"), ("sum", "102.0 tok/s"),
     ("count", "3.0"), ("first", "31.0 tok/s")],
)  # fmt: skip
def test_each_statistic_has_its_known_answer(bench, stat: str, text: str) -> None:
    made = bench.decode("decode-0001", [31.0, 41.0, 30.0])
    bench.facts(SHORT.replace("STAT", stat))
    fact = evaluate(bench.dir)["speed"]
    assert fact.text == text
    assert (fact.receipts, fact.digests, fact.dates, fact.origin) == (
        ["decode-0001"],
        [made.digest],
        ["2026-09-22"],
        "measured",
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS value FROM decode", "SELECT max(decode_tok_s) * 2 AS v FROM decode",
        "SELECT (SELECT max(decode_tok_s) FROM decode) AS value", "SELECT max(d.decode_tok_s) FROM decode d",
        "WITH a AS (SELECT *, 1 AS one FROM decode) SELECT max(decode_tok_s) AS value FROM a",
        "WITH a AS (SELECT max(decode_tok_s) AS v FROM decode), b AS (SELECT v / 2 AS v FROM a) SELECT a.v + b.v AS value FROM a, b",
    ],
)  # fmt: skip
def test_sql_that_reads_a_column_is_no_typed_number(bench, sql: str) -> None:
    bench.decode("decode-0001", [31.0, 41.0])
    bench.facts(f"speed:\n  sql: {sql}\n")
    assert evaluate(bench.dir)["speed"].receipts == ["decode-0001"]


def test_only_wants_one_row(bench) -> None:
    bench.decode("decode-0001", [31.0])
    bench.facts(SHORT.replace("STAT", "only"))
    assert evaluate(bench.dir)["speed"].value == 31.0
    bench.decode("decode-0002", [32.0])
    with pytest.raises(BadFile, match=r"facts\.yaml:2 \(field speed\): 2 rows, but stat 'only' needs one"):
        evaluate(bench.dir)


def test_contended_rows_never_enter_a_median_but_can_be_asked_for(bench) -> None:
    bench.decode("decode-0001", [30.0, 32.0])
    bench.decode("decode-0002", [1.0, 2.0], row_state="contended")
    bench.facts(
        SHORT.replace("STAT", "median")
        + """
noisy:
  from: {kind: decode, where: {row_state: contended}, value: decode_tok_s, stat: median}
"""
    )
    found = evaluate(bench.dir)
    assert (found["speed"].value, found["speed"].n) == (31.0, 2)
    assert "not contended" in found["speed"].query
    assert found["noisy"].value == 1.5


def test_no_rows_names_fact_file_and_line_and_a_draft_says_so(bench) -> None:
    bench.facts(SHORT.replace("STAT", "median"))
    with pytest.raises(
        NothingMeasured, match=r"facts\.yaml:2: fact 'speed': no row for: median of decode_tok_s in decode"
    ):
        evaluate(bench.dir)
    draft = evaluate(bench.dir, strict=False)["speed"]
    assert (draft.value, draft.text) == (None, "not measured yet")
    assert ".missing" in fact_link(draft)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("speed:\n  from: {kind: decode, value: tok_s}\n", "kind 'decode' has no column 'tok_s' \\(valid: .*decode_tok_s"),
        ("speed:\n  from: {kind: decode, value: decode_tok_s, where: {sise: 1K}}\n", "no column 'sise'"),
        ("speed:\n  from: {kind: decoder, value: x}\n", "unknown receipt kind 'decoder'; did you mean 'decode'"),
        ("speed:\n  from: {kind: decode, value: decode_tok_s, stat: mode}\n", "speed.from.stat"),
        ("speed:\n  sql: SELECT 1\n  from: {kind: decode, value: x}\n", "needs either `from` or `sql`"),
        ("speed:\n  digits: 2\n", "needs either `from` or `sql`"),
        ("speed:\n  sql: SELECT 1 AS value\n", "value 1 is typed, not read"),
        ("speed:\n  sql: SELECT 41.5 AS v FROM decode LIMIT 1\n", "is typed, not read"),
        ("speed:\n  sql: SELECT 41.5 AS value, receipt FROM decode LIMIT 1\n", "is typed, not read"),
        ("speed:\n  sql: SELECT x AS value FROM (SELECT 41.5 AS x FROM decode) LIMIT 1\n", "is typed, not read"),
        ("speed:\n  sql: WITH a AS (SELECT 41.5 AS x FROM decode) SELECT max(x) + 1 AS value FROM a\n", "is typed, not read"),
        ("speed:\n  sql: SELECT max(41.5) FILTER (decode_tok_s > 0) AS value FROM decode\n", "is typed, not read"),
        ("speed:\n  sql: SELECT (SELECT 41.5) AS value, min(receipt) AS receipt FROM decode\n", "is typed, not read"),
        ("speed:\n  sql: (SELECT decode_tok_s AS value FROM decode WHERE false) UNION ALL SELECT 3\n", "is typed, not read"),
        ("speed:\n  sql: SELECT decode_tok_s FROM decode\n", "the SQL gives 3 rows"),
        ("speed:\n  sql: SELECT 1 AS a, 2 AS b, receipt FROM decode LIMIT 1\n", "name the SQL's result column `value`"),
        ("speed:\n  sql: DROP VIEW decode\n", "one SELECT"),
        ("speed:\n  sql: SELECT 1 AS value; SELECT 2\n", "one SELECT"),
        ("speed:\n  sql: COPY decode TO 'stolen.csv'\n", "one SELECT"),
        ("speed:\n  sql: SELECT content AS value FROM read_text('/etc/hostname')\n", "the query fails"),
        ("speed:\n  from: {kind: decode, value: decode_tok_s, stat: median}\n  unit: GiB\n", "no conversion from 'tok/s' to 'GiB'"),
        ("speed:\n  unitt: s\n  sql: SELECT 1\n", "Extra inputs"),
        ("Speed:\n  sql: SELECT 1\n", "not a fact's name"),
        ("speed: [1\n", "is not YAML"),
        ("- speed\n", "must be a mapping"),
    ],
)  # fmt: skip
def test_every_mistake_is_one_line_with_the_file(bench, text: str, why: str) -> None:
    bench.decode("decode-0001", [1.0, 2.0, 3.0])
    bench.facts(text)
    with pytest.raises(BadFile, match=why) as caught:
        evaluate(bench.dir)
    assert "facts.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_origins_and_emulation_never_mix_unless_derived(bench) -> None:
    bench.decode("decode-0001", [10.0])
    bench.decode("decode-0002", [30.0], origin="published")
    bench.facts(SHORT.replace("STAT", "mean"))
    with pytest.raises(BadFile, match=r"mixes origins \(measured, published\)"):
        evaluate(bench.dir)
    bench.facts(SHORT.replace("STAT", "mean") + "  derived: true\n")
    fact = evaluate(bench.dir)["speed"]
    assert (fact.value, fact.origin, fact.origins) == (20.0, "derived", ["measured", "published"])


def test_emulated_rows_do_not_mix_with_real_ones(bench) -> None:
    bench.decode("decode-0001", [10.0])
    bench.decode("decode-0002", [30.0], emulated="memory tiers")
    bench.facts(SHORT.replace("STAT", "mean"))
    with pytest.raises(BadFile, match="mixes emulated receipts with real ones"):
        evaluate(bench.dir)


def test_long_form_carries_its_receipts_and_its_own_unit(bench) -> None:
    bench.decode("decode-0001", [20.0, 20.0])
    bench.decode("decode-0002", [25.0], size="2K", tokens=2048)
    bench.facts(
        "ratio:\n  sql: |\n    SELECT a.v / b.v AS value, list_concat(a.ids, b.ids) AS receipts\n"
        "    FROM (SELECT median(decode_tok_s) AS v, list(DISTINCT receipt) AS ids FROM decode WHERE size = '2K') a,\n"
        "         (SELECT median(decode_tok_s) AS v, list(DISTINCT receipt) AS ids FROM decode WHERE size = '1K') b\n"
        "  digits: 2\n"
    )
    fact = evaluate(bench.dir)["ratio"]
    assert (fact.text, fact.receipts) == ("1.25", ["decode-0001", "decode-0002"])


def test_long_form_over_one_receipt_needs_not_name_it(bench) -> None:
    bench.knee("knee-0001", {1: [10.0], 2: [19.0], 4: [20.0]})
    bench.facts(
        "knee:\n  sql: WITH levels AS (SELECT streams, max(aggregate_tok_s) AS v FROM knee GROUP BY 1) "
        "SELECT min(streams) FROM levels WHERE v >= 0.95 * (SELECT max(v) FROM levels)\n  unit: streams\n"
    )
    fact = evaluate(bench.dir)["knee"]
    assert (fact.text, fact.receipts) == ("2 streams", ["knee-0001"])


def test_disputed_values_stand_side_by_side(bench) -> None:
    rows = [{"collection": "post", "name": "size", "part": "0", "value": 527.0, "unit": "GiB"},
            {"collection": "card", "name": "size", "part": "1", "value": 534.1, "unit": "GiB"}]  # fmt: skip
    bench.receipt("figure-0001", "figure", rows, origin="published")
    bench.facts("""\
checkpoint:
  digits: 1
  disputed:
    - {from: {kind: figure, where: {collection: post}, value: value}, says: the post}
    - {from: {kind: figure, where: {collection: card}, value: value}, says: the card}
""")
    fact = evaluate(bench.dir)["checkpoint"]
    assert fact.text == "527.0 GiB against 534.1 GiB"
    assert fact_link(fact).count("](/receipts/trial/figure-0001.html ") == 2


def test_where_values_are_parameters_never_sql(bench) -> None:
    bench.decode("decode-0001", [30.0])
    for hostile in ("1K' OR '1'='1", "'; DROP VIEW decode; --", '1K" OR 1=1 --', "?"):
        quoted = hostile.replace("'", "''")
        bench.facts(f"speed:\n  from: {{kind: decode, where: {{size: '{quoted}'}}, value: decode_tok_s, stat: max}}\n")
        with pytest.raises(NothingMeasured):
            evaluate(bench.dir)
    bench.facts("speed:\n  from: {kind: decode, where: {'size\" OR 1=1 --': x}, value: decode_tok_s}\n")
    with pytest.raises(BadFile, match="no column"):
        evaluate(bench.dir)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=30).filter(lambda text: text != "1K"))
def test_no_text_in_where_reaches_other_rows(bench, text: str) -> None:
    from lanelab.publish.facts_file import FromRows, compiled
    from lanelab.receipts.kinds import kind

    if not list(bench.store.paths()):
        bench.decode("decode-0001", [30.0])
        bench.reader = Reader(bench.dir)

    def short(size: str) -> FromRows:
        return FromRows(kind="decode", where={"size": size}, value="decode_tok_s", stat="max")

    sql, values, _ = compiled(short(text), kind("decode"))
    assert (sql, values) == (compiled(short("1K"), kind("decode"))[0], [text])
    assert bench.reader.select(sql, values)[0]["receipts"] is None


def test_a_changed_byte_in_a_receipt_refuses_the_fact(bench) -> None:
    bench.decode("decode-0001", [30.0])
    bench.facts(SHORT.replace("STAT", "median"))
    path = bench.dir / "receipts" / "decode" / "decode-0001.json"
    path.write_bytes(path.read_bytes().replace(b'"decode_tok_s":30', b'"decode_tok_s":90'))
    with pytest.raises(BrokenReceipt, match=r"decode-0001\.json"):
        evaluate(bench.dir)


def test_private_receipts_are_not_read(bench) -> None:
    bench.decode("decode-0001", [30.0], visibility="private")
    bench.facts(SHORT.replace("STAT", "median"))
    with pytest.raises(NothingMeasured):
        evaluate(bench.dir)
    with pytest.raises(BadFile, match="private receipt decode-0001"):
        evaluate(bench.dir, reader=Reader(bench.dir, public_only=False))


def test_evaluated_notices_new_receipts_and_changed_facts(bench) -> None:
    bench.decode("decode-0001", [30.0])
    bench.facts(SHORT.replace("STAT", "median"))
    assert evaluated(bench.dir)["speed"].value == 30.0
    bench.decode("decode-0002", [40.0])
    assert evaluated(bench.dir)["speed"].value == 35.0


def test_lazy_facts_read_only_what_is_asked(bench) -> None:
    bench.decode("decode-0001", [30.0])
    bench.facts(SHORT.replace("STAT", "median") + "broken:\n  sql: SELECT nothing FROM nowhere\n")
    found = Facts(bench.dir, Reader(bench.dir))
    assert found["speed"].value == 30.0 and list(found) == ["speed", "broken"]
    with pytest.raises(BadFile, match="field broken"):
        found["broken"]


def test_unknown_fact_offers_the_near_name(bench) -> None:
    bench.decode("decode-0001", [30.0])
    bench.facts(SHORT.replace("STAT", "median"))
    with pytest.raises(NotFound, match="did you mean 'speed'"):
        evaluate(bench.dir, only="sped")


def test_empty_or_commented_file_has_no_facts(bench) -> None:
    assert evaluate(bench.dir) == {}
    bench.facts("# nothing yet\n")
    assert evaluate(bench.dir) == {}


def test_published_campaign_evaluates_to_its_sources_digits() -> None:
    campaign = Path(__file__).parents[3] / "data" / "campaigns" / "mimo26-pro-gb300"
    if not (campaign / "facts.yaml").exists():
        pytest.skip("the published campaign is not in this checkout")
    found = evaluate(campaign)
    assert found["v22_kv_tokens"].text == "302,368 tokens"
    assert all(fact.receipts for fact in found.values())
