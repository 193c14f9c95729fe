"""Sentences, links and variables."""

import pytest
import yaml

from lanelab.errors import NotFound
from lanelab.publish import variables
from lanelab.publish.facts import evaluate
from lanelab.publish.prose import loose_digits
from lanelab.publish.provenance import fact_link, hover
from lanelab.publish.say import LooseDigit, said

FACTS = "speed:\n  from: {kind: decode, where: {size: 1K}, value: decode_tok_s, stat: median}\n  digits: 1\n"


def test_a_sentence_links_its_number_to_its_receipt(bench) -> None:
    made = bench.decode("decode-0001", [37.35, 37.4, 37.5], emulated="memory tiers")
    bench.facts(FACTS)
    text = said("Decode runs at {speed} on `C8`; {{not a fact}}.", evaluate(bench.dir))
    assert "[37.4 tok/s](/receipts/trial/decode-0001.html " in text and "{.fact .measured .emulated}" in text
    assert "{not a fact}" in text
    for part in (
        "measured",
        "memory tiers",
        "decode-0001",
        made.digest[:19],
        "median of decode_tok_s",
        "n = 3",
        "2026-09-22",
    ):
        assert part in text
    assert loose_digits(text) == []


def test_without_a_site_the_number_is_a_span_with_the_same_hover(bench) -> None:
    bench.decode("decode-0001", [37.4])
    bench.facts(FACTS)
    text = said("{speed}", evaluate(bench.dir), site=False)
    assert text.startswith('<span class="fact measured" title="measured · decode-0001') and ">37.4 tok/s</span>" in text


@pytest.mark.parametrize("text", ["It is 3x faster.", "{speed} and 4 more", "In 2025 {speed}"])
def test_a_typed_digit_is_refused(bench, text: str) -> None:
    bench.decode("decode-0001", [37.4])
    bench.facts(FACTS)
    with pytest.raises(LooseDigit, match="is a number that is no fact"):
        said(text, evaluate(bench.dir))


@pytest.mark.parametrize("place", ["{sped}", "{}", "{speed.text}", "{speed!r}", "{0}", "{speed:>9}", "{ speed[0] }"])
def test_only_a_fact_name_stands_in_braces(bench, place: str) -> None:
    bench.decode("decode-0001", [37.4])
    bench.facts(FACTS)
    with pytest.raises(NotFound):
        said(place, evaluate(bench.dir))


def test_hostile_words_cannot_leave_the_link(bench) -> None:
    bench.decode("decode-0001", [37.4], size='a" onmouseover="x')
    bench.facts(
        "speed:\n  from: {kind: decode, where: {size: 'a\" onmouseover=\"x'}, value: decode_tok_s, stat: max}\n"
        "words:\n  sql: SELECT '](x) <b>' AS value, 'decode-0001' AS receipt\n"
    )
    found = evaluate(bench.dir)
    link = fact_link(found["speed"])
    assert link.count('"') == 2 and "{{<" not in link
    assert "<b>" not in fact_link(found["words"]) and r"\]" in fact_link(found["words"])
    assert "\n" not in hover(found["speed"])


def test_several_receipts_link_to_the_facts_page(bench) -> None:
    bench.decode("decode-0001", [37.0])
    bench.decode("decode-0002", [38.0])
    bench.facts(FACTS)
    assert "](/receipts/trial/facts.html#fact-speed " in fact_link(evaluate(bench.dir)["speed"])


def test_variables_are_yaml_that_reads_back(bench, tmp_path) -> None:
    bench.decode("decode-0001", [37.4])
    bench.facts(FACTS)
    path = variables.write(tmp_path / "site", [bench.dir])
    first = path.read_bytes()
    value = yaml.safe_load(first)
    assert value["trial"]["speed"] == fact_link(evaluate(bench.dir)["speed"])
    assert value["trial"]["speed_plain"] == "37.4"
    variables.write(tmp_path / "site", [bench.dir])
    assert path.read_bytes() == first
