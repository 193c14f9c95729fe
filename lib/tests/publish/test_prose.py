"""Loose digits: found wherever they stand in prose, exempt only where the rule says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab.publish.prose import loose_digits


@pytest.mark.parametrize(
    "text",
    [
        "Run `lanelab measure knee -n 8` twice.", "```sh\npip install x==1.2\n```", "On 2026-09-22 at 2026-09-22T10:00:00Z.",
        "On 22 September 2026, and in September 2026, and on 3 May.", "vLLM 0.26.0, Python 3.11, v24, v19b and 2.11.0+cu130.",
        "MiMo-V2.6-Pro on a GB300 and an H200, MXFP4 and FP8, C1 and C80.", "See #57794, PR 58184, RFC 8785, issue 12.",
        "As @fig-knee-2 shows.", "[text](https://example.org/2026/1 \"n = 3\")", "[37.4 tok/s](/r/x.html \"n = 3\"){.fact .measured}",
        "{{< var mini.decode_tok_s_3 >}} in {{< embed ../04-decode.ipynb#fig-1 >}}", "1. First\n2. Second", "## Title {#sec-1}",
        "---\ntitle: 5 things\n---\nText.", "Step 04-decode and 01-memory-arithmetic.", "x86-64, bf16, int8 and sha256.",
        "<img width=\"300\" alt=\"none\">", "<span class=\"fact measured\" title=\"n = 3\">37.4 tok/s</span>",
        "Text.[^1]\n\n[^1]: A note.", "A `a ``b`` 3` c.", "::: {.column width=\"50%\"}\nText\n:::", "<!-- 3 things -->",
    ],
)  # fmt: skip
def test_exempt(text: str) -> None:
    assert loose_digits(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It runs at 37.4 tok/s.", ["37.4"]), ("About 3x faster, 20% less.", ["3x", "20%"]), ("x10 faster", ["x10"]),
        ("a top-8 router", ["top-8"]), ("layer-48 only", ["layer-48"]), ("It took 1,024 tokens.", ["1,024"]),
        ("[See 42 of them](page.html)", ["42"]), ("In 2026 it was fine.", ["2026"]), ("**12** boots", ["12"]),
        ("| a | 7 |\n| - | - |", ["7"]), ("GB300 gave 61 GB/s", ["61"]), ("4-bit weights", ["4-bit"]), ("n=3", ["n=3"]),
        ("1.61 against stock", ["1.61"]), ("- 5 boots", ["5"]), ("half of 16\u00a0GiB", ["16"]), ("½ and ² are not typed digits: 9", ["9"]),
    ],
)  # fmt: skip
def test_found(text: str, words: list[str]) -> None:
    assert [finding.text for finding in loose_digits(text)] == words


def test_position_is_line_and_column_of_the_source() -> None:
    finding = loose_digits("---\ntitle: 9\n---\n\nfine `8`\nand then 42 more\n")[0]
    assert (finding.line, finding.column, finding.text) == (6, 10, "42")


@given(
    st.integers(0, 10**9),
    st.sampled_from(["speed {} tok/s", "it is {}.", "({})", "**{}**", "a\n\n{} b", "> {}", "up to {} %"]),
)
def test_a_typed_number_is_always_found(number: int, form: str) -> None:
    assert loose_digits(form.format(number)), form


@given(st.text(alphabet="ab `*[](){}<>#\n|:.-1", max_size=60))
def test_never_fails_on_odd_markdown(text: str) -> None:
    for finding in loose_digits(text):
        assert finding.text.strip() or finding.line >= 1
