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
        "As @fig-knee-2 shows.", "[text](https://example.org/2026/1 \"n\")", "[37.4 tok/s](/r/x.html \"n = 3\"){.fact .measured}",
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
        ("1.61 against stock", ["1.61"]), ("- 5 boots", ["5"]), ("half of 16\u00a0GiB", ["16"]), ("½ and ² are numbers as 9 is", ["½", "²", "9"]),
    ],
)  # fmt: skip
def test_found(text: str, words: list[str]) -> None:
    assert [finding.text for finding in loose_digits(text)] == words


@pytest.mark.parametrize(
    "text",
    [
        "May 7103 tokens", "March 7104", "Speed-7106.5", "Latency7107", "Driver 7109.5 tokens", "Ratio 71.11.0", "PR 7137 tok/s",
        "ISO 7138", "v7136 tok/s", "v136 tok/s", "77-tokens-per-second", "07-tokens-per-second", "Reached #7108 tokens",
        "May 2026 tokens", "2026-09-28\u00a0tok/s", "CUDA 13 GiB", "C80 requests", "In #7108 we saw it", "H200-7101", "Qwen3-7101",
    ],
)  # fmt: skip
def test_no_number_is_a_name_because_of_its_shape(text: str) -> None:
    assert len(loose_digits(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "MiMo-V2.6-Pro", "GB300-based", "Qwen3-0.6B", "Qwen3-30B-A3B", "PCIe 5", "PCIe 5.0", "CUDA 13.0", "SM100", "sm_90a", "int4",
        "MXFP4 experts on H200", "driver 580.126.20", "28 September 2026", "Sept 2026", "vLLM v0.26.0rc1", "PRs #58184, #57794 and #1",
        "issue #58184",
        "PRs 58184 and 57794", "[#58184](https://github.com/vllm-project/vllm/pull/58184)", "E4M3", "boot v19b", "at 127.0.0.1",
    ],
)  # fmt: skip
def test_known_names(text: str) -> None:
    assert loose_digits(text, facts=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "A [7101 tok/s]{.fact} number.", "A [7101 tok/s](/receipts/x.html){.fact .measured} number.",
        '<span class="fact">7101 tok/s</span>', '<span class="fact" title="7101">fast</span>',
    ],
)  # fmt: skip
def test_a_typed_fact_is_a_typed_number(text: str) -> None:
    assert loose_digits(text) == []
    assert len(loose_digits(text, facts=False)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "```{=html}\n<p>Raw 7118 tok/s</p>\n```", "<p>Raw 7118 tok/s</p>", '<img width="300" alt="alt 7114 tok/s">',
        "`<b>7129</b>`{=html}", "```{=html}\n<img alt='7114' width='300'>\n```", "a <b 7118 c>", "<!-- ` --> 7118 `",
        "`<!--` 7118 `-->`", "<!--\n```\n-->\n7118\n```", r"\`7118\`", "`a\n\n7118\n\nb`", "&#55;&#49;", "&#x37;1 tok/s", "&frac12;",
        "See #7108, &#55;1 of them", "½ of it", "② boots", "Ⅷ boots", "Text.\n712. Then it fell.", "Text.\n\n712. Then it fell.",
        "- item\n712. Then it fell.", '[link](index.qmd "title 7115")', "[link](index.qmd 'title 7115')", '![](a.png "title 7115")',
        '![Speed](a.png){width="50%" fig-alt="It reached 7113"}', "Text.[^1]\n\n[^1]: It reached 7113.", "Text.[^712]", "[a][7101]",
        '::: {.callout-note title="It reached 7113"}\nText\n:::', "::: 7113 tok/s", "Text\n[Speed]: 7101", "[Speed]: 7101 tok/s",
        'Text [a].\n\n[a]: index.qmd "title 7115"', "a {.x y=7101} b", "[a\\](7101)", "@note-7101", "{{< unknown 7101 >}}",
    ],
)  # fmt: skip
def test_found_wherever_a_reader_would_read_it(text: str) -> None:
    assert len(loose_digits(text, facts=False)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "1. First\n2. Second\n3. Third", "1. First\n\n   Text.\n\n2. Second", "1. First\n1. Second", "Text\n1. First", "````\n```\n5\n````",
        "[a][r1]\n\n[r1]: https://example.org/7 'title'", "[![a](x1.png)](y2.html)", "# Title {#sec-1 .x}", '![a](b1.svg){#fig-1 width="50%"}',
        "```{=html}\n<style>p {margin: 3px}</style><p style='margin: 3px'>Text</p>\n```", "`a``1`", "&nbsp;&#160;&amp;", "`x`{.py}",
        "::: {#fig-2 .column width=50%}\nText\n:::", '::: {.callout-note title="Two hours"}\n:::', "    ```\n    5\n    ```",
    ],
)  # fmt: skip
def test_markup_is_no_number(text: str) -> None:
    assert loose_digits(text, facts=False) == []


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
