"""The receipts browser, claims and corrections."""

from __future__ import annotations

import json

import pytest

from lanelab.errors import BadFile
from lanelab.publish import receipts_pages, register
from lanelab.publish.facts import evaluate
from lanelab.publish.ledger import BrokenReceipt
from lanelab.publish.prose import loose_digits
from lanelab.publish.reader import Reader
from lanelab.receipts import Receipt

FACTS = "speed:\n  from: {kind: decode, where: {size: 1K}, value: decode_tok_s, stat: median}\n  digits: 1\n"


def test_a_page_a_receipt_an_index_and_the_facts(bench, tmp_path) -> None:
    made = bench.decode("decode-0001", [30.0, 31.0])
    bench.facts(FACTS)
    site = tmp_path / "site"
    receipts_pages.write(site, [bench.dir])
    folder = site / "receipts" / "trial"
    page = (folder / "decode-0001.qmd").read_text()
    assert made.digest in page and "`measured`" in page and "decode\\_tok\\_s, tok/s" in page and "| 31 |" in page
    assert "`speed` [30.5 tok/s]" in page
    assert json.loads((folder / "decode-0001.json").read_text())["digest"] == made.digest
    assert "[`decode-0001`](/receipts/trial/decode-0001.html" in (folder / "index.qmd").read_text()
    assert "{#fact-speed}" in (folder / "facts.qmd").read_text()


def test_retracted_and_superseded_receipts_say_so(bench, tmp_path) -> None:
    bench.decode("decode-0001", [30.0])
    bench.decode("decode-0002", [31.0], supersedes="decode-0001")
    bench.decode("decode-0003", [99.0])
    bench.store.retract(
        "decode-0003",
        "wrong lane",
        Receipt(id="retraction-0001", kind="retraction", origin="measured", campaign="trial"),
    )
    site = tmp_path / "site"
    receipts_pages.write(site, [bench.dir])
    folder = site / "receipts" / "trial"
    assert "**Superseded** by [`decode-0002`]" in (folder / "decode-0001.qmd").read_text()
    assert "**Retracted** by [`retraction-0001`]" in (folder / "decode-0003.qmd").read_text()
    assert "`wrong lane`" in (folder / "decode-0003.qmd").read_text()


def test_private_receipts_get_no_page_and_old_pages_go(bench, tmp_path) -> None:
    bench.decode("decode-0001", [30.0], visibility="private")
    site = tmp_path / "site"
    (site / "receipts" / "trial").mkdir(parents=True)
    (site / "receipts" / "trial" / "decode-0000.qmd").write_text("old")
    receipts_pages.write(site, [bench.dir])
    assert {path.name for path in (site / "receipts" / "trial").glob("*.qmd")} == {"index.qmd", "facts.qmd"}
    assert "decode-0001" not in (site / "receipts" / "trial" / "index.qmd").read_text()


def test_a_second_write_changes_no_byte(bench, tmp_path) -> None:
    bench.decode("decode-0001", [30.0])
    site = tmp_path / "site"
    first = {path: path.read_bytes() for path in receipts_pages.write(site, [bench.dir])}
    assert {path: path.read_bytes() for path in receipts_pages.write(site, [bench.dir])} == first


def test_a_flipped_byte_stops_the_browser(bench, tmp_path) -> None:
    bench.decode("decode-0001", [30.0])
    path = bench.dir / "receipts" / "decode" / "decode-0001.json"
    path.write_bytes(path.read_bytes().replace(b"30", b"31", 1))
    with pytest.raises(BrokenReceipt, match=r"decode-0001\.json"):
        receipts_pages.write(tmp_path / "site", [bench.dir])


def test_claims_are_sorted_by_state_with_evidence(bench) -> None:
    bench.decode("decode-0001", [30.0])
    bench.facts(FACTS)
    (bench.dir / "claims.yaml").write_text(
        "slow:\n  says: It gets no faster.\n  state: disproved\n  evidence: [decode-0001]\n  changed: 2026-09-22\n"
        "fast:\n  says: It reaches {speed}.\n  state: supported\n  evidence: [speed]\n"
    )
    lines = register.claims_table(bench.dir, evaluate(bench.dir)).splitlines()
    assert "It reaches [30.0 tok/s](" in lines[2] and "| supported |" in lines[2]
    assert "| disproved, 2026-09-22 | [`decode-0001`](" in lines[3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a:\n  says: It is 3x faster.\n  state: open\n", r"claims\.yaml:1 \(field a\): '3x'"),
        ("a:\n  says: Yes.\n  state: proven\n", r"claims\.yaml:3 \(field a\.state\)"),
        ("b:\n  says: Yes.\n  state: open\na:\n  says: No.\n  state: open\n  evidence: [nowhere-0001]\n", r"claims\.yaml:4 .*neither a fact nor a receipt"),
        ("a:\n  says: Yes.\n  state: open\n  by: me\n", "Extra inputs"),
    ],
)  # fmt: skip
def test_a_bad_claim_is_named(bench, text: str, why: str) -> None:
    bench.decode("decode-0001", [30.0])
    (bench.dir / "claims.yaml").write_text(text)
    with pytest.raises(BadFile, match=why):
        register.claims_table(bench.dir, {})


def test_corrections_come_from_the_file_and_from_published_receipts(bench) -> None:
    bench.receipt("figure-0001", "figure", [
        {"collection": "post", "name": "ctx", "value": 1048576, "unit": "tokens", "flag": "corrected", "corrected_on": "2026-09-23",
         "old_value": "262144", "note": "a recipe | setting"},
    ], origin="published")  # fmt: skip
    (bench.dir / "corrections.yaml").write_text(
        "cause:\n  date: 2026-09-21\n  was: The kernel image is at fault.\n  now: The loader is.\n  evidence: [figure-0001]\n"
    )
    lines = register.corrections_table(bench.dir, {}, Reader(bench.dir)).splitlines()
    assert lines[2].startswith("| 2026-09-21 | The kernel image is at fault. | The loader is. |")
    words = ("262144", "1,048,576 tokens", "a recipe ¦ setting")
    quoted = "".join(f'| <span class="fact published">{text}</span> ' for text in words)
    assert lines[3].startswith(f"| 2026-09-23 {quoted}| [`figure-0001`](") and loose_digits("\n".join(lines)) == []
