"""References, embeds and facts in the sources: what the fallback is given, and that both parsers agree on it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab.errors import BadFile
from lanelab.publish.site import expect, here
from lanelab.publish.site.build import build
from lanelab.publish.site.built import BuiltSite, squeezed
from lanelab.publish.site.check import check
from lanelab.publish.site.crossref import mark, number
from lanelab.publish.site.preprocess import fill_variables, unescaped
from lanelab.publish.site.source import lines_outside_code, parse_page

EVERYTHING = """---
title: Everything at *once*
date: 2026-01-02
number-sections: true
---

As @fig-a and [-@fig-knee] show, and also [Tables @tbl-own]; see (@sec-two). A mail is me@example.org, code is `@fig-a`.

# One

![A picture with {{< var demo.knee >}} and *emphasis*](../../styles/favicon.svg){#fig-a fig-alt="A sign."}

Text "in quotes" -- with dashes --- and dots...

{{< embed ../../notebooks-out/demo/04-decode.ipynb#fig-knee >}}

| column | number |
| :-- | --: |
| a `code` | {{< var demo.knee >}} |
| **bold** [link](companion.qmd) | none |

: The caption, with @fig-a {#tbl-own}

# Two {#sec-two}

::: {#fig-div}
```{=html}
<svg role="img" aria-label="A line" viewBox="0 0 9 9"><path d="M0 0L9 9"/></svg>
```

A caption of its own, of a `div`.
:::

::: {.callout-warning title="Mind *this*"}
- first
- second
    - nested with ~~struck~~ words

1. one
2. two
:::

> A quote
> over lines.

```yaml
a: {{{< var demo.knee >}}} # @fig-a
```

Inline `{{{< var demo.knee >}}}` is shown. A [badge]{.badge .measured} too.

<!-- a comment is not shown -->

## Deeper {.unnumbered}

Hard line\\
break, an escaped \\*star\\* and &amp; an entity.
"""


def test_a_page_of_everything_is_the_same_to_both_parsers(demo_lab):
    demo_lab.post("all").write_text(EVERYTHING, "utf-8")
    build(demo_lab.root, renderer="fallback")
    findings = [f for f in check(demo_lab.root) if f.rule != "digit"]
    assert findings == []
    page = next(p for path, p in BuiltSite(demo_lab.folders.built).pages.items() if path.stem == "all")
    assert page.reading.headings == ["Everything at once", "One", "Two", "Deeper"]
    assert page.reading.captions == [
        "Figure 1: A picture with 8 streams and emphasis",
        "Figure 2: Speed over streams.",
        "Table 1: The caption, with Figure 1",
        "Figure 3: A caption of its own, of a div.",
    ]
    assert (
        squeezed("As Figure 1 and 2 show, and also Tables 1; see (Section 2). A mail is me@example.org")
        in page.reading.words
    )
    assert squeezed("{{< var demo.knee >}} is shown. A badge too.") in page.reading.words
    assert 'alt="A sign."' in page.text


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("@fig-a", "[Figure\u00a01](#fig-a){.quarto-xref}"),
        ("-@fig-a", "[1](#fig-a){.quarto-xref}"),
        ("[@fig-a]", "[Figure\u00a01](#fig-a){.quarto-xref}"),
        ("[Fig. @fig-b]", "[Fig.\u00a02](#fig-b){.quarto-xref}"),
        ("(@tbl-a).", "([Table\u00a01](#tbl-a){.quarto-xref})."),
        ("@fig-none", "**?\\@fig-none**"),
        ("`@fig-a` a@fig-a.org \\@fig-a", "`@fig-a` a@fig-a.org \\@fig-a"),
        ("```\n@fig-a\n```", "```\n@fig-a\n```"),
    ],
)
def test_references(source, shown):
    page = f"{mark('fig-a')}one\n\n{mark('tbl-a')}two\n\n{mark('fig-b')}three\n\n{source}\n"
    assert number(page, number_sections=False) == (
        f"Figure\u00a01: one\n\nTable\u00a01: two\n\nFigure\u00a02: three\n\n{shown}\n"
    )


def test_sections_are_numbered_from_the_first_level_used():
    text = "## A {#sec-a}\n### B\n### C {#sec-c}\n## D {.unnumbered}\n## E {#sec-e}\n\n@sec-a @sec-c @sec-e\n"
    assert re.findall(r"Section\u00a0([\d.]+)", number(text, number_sections=True)) == ["1", "1.2", "2"]


@given(st.lists(st.sampled_from(["fig-a", "fig-b", "tbl-a", "tbl-b", "fig-c"]), max_size=8))
def test_numbers_count_up_in_order_of_the_page(labels):
    text = number("\n\n".join(f"{mark(label)}x" for label in labels), number_sections=False)
    first = list(dict.fromkeys(labels))
    for kind, word in (("fig", "Figure"), ("tbl", "Table")):
        mine = [label for label in first if label.startswith(kind)]
        expected = [str(mine.index(label) + 1) for label in labels if label.startswith(kind)]
        assert re.findall(rf"{word}\u00a0(\d+): ", text) == expected


@given(st.text(alphabet="a`~ \n#{}@-", max_size=80))
def test_every_line_is_given_back(body):
    assert [line for _, line, _ in lines_outside_code(body)] == body.splitlines()


def test_facts_are_filled_in_outside_code_only():
    values = {"demo": {"knee": "[8](x.html)"}}
    assert fill_variables("{{< var demo.knee >}}\n", values) == "[8](x.html)\n"
    assert fill_variables("```\n{{< var demo.knee >}}\n```\n", values) == "```\n{{< var demo.knee >}}\n```\n"
    assert fill_variables("{{< var demo.no >}}\n", values) == "**?var:demo.no**\n"
    assert fill_variables("{{{< var demo.knee >}}}\n", values) == "{{{< var demo.knee >}}}\n"
    assert unescaped("```\n{{{< var a.b >}}}\n```\n") == "```\n{{< var a.b >}}\n```\n"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("---\ntitle: x\n", 1, "never closed"),
        ("---\ntitle: [x\n---\n", 2, "not YAML"),
        ("---\n- x\n---\n", 1, "mapping"),
    ],
)
def test_broken_front_matter_is_named(tmp_path, text, line, why):
    with pytest.raises(BadFile, match=rf"page.qmd:{line}: .*{why}"):
        parse_page(tmp_path / "page.qmd", text)


def test_include_of_nothing_names_page_and_line(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "x\n\n{{< include nowhere.md >}}\n")
    line = demo_lab.line_of(demo_lab.post(), "nowhere.md")
    with pytest.raises(BadFile, match=rf"index.qmd:{line}: includes nowhere.md"):
        build(demo_lab.root, renderer="fallback")


def test_here_tells_the_story_of_mini_with_its_own_facts():
    text = (
        '---\ntitle: "The lane"\ndate: 2026-01-02\nanswer: "{{< var mini.knee >}}"\n---\n\n'
        "{{< include ../../receipts/mini/_status.md >}}\n{{< embed ../../notebooks-out/mini/04-decode.ipynb#fig-a >}}\n"
        "The mini lane, minimal: {{< var mini.knee >}}.\n"
    )
    told = here.retold(text, "This machine")
    assert 'title: "This machine"' in told and "date:" not in told
    assert told.count("{{< var here.knee >}}") == 2 and "receipts/here/_status.md" in told
    assert "notebooks-out/here/04-decode.ipynb" in told and "The mini lane, minimal" in told
    assert here.MADE in told


def test_posts_of_here_that_somebody_took_over_are_kept(demo_lab):
    posts = demo_lab.root / "site" / "posts"
    (posts / "mini").mkdir()
    for stem in here.TITLES:
        (posts / "mini" / f"{stem}.qmd").write_text("---\ntitle: x\n---\n\nWords.\n", "utf-8")
    here.write_posts(demo_lab.folders)
    made = posts / "here" / "index.qmd"
    assert "Words." in made.read_text("utf-8")
    made.write_text(made.read_text("utf-8").replace(here.MADE, "Mine."), "utf-8")
    here.write_posts(demo_lab.folders)
    assert "Mine." in made.read_text("utf-8")


def test_expectations_come_from_the_source_alone(demo_lab):
    found = expect.expected(demo_lab.post(), demo_lab.root / "site")
    assert found.headings == ["A demo campaign", "What was measured", "What was not measured"]
    assert found.captions == ["Figure 1: Speed over streams.", "Table 1: Every row."]
    assert "The knee stands at 8 streams; Figure 1 shows why, and Table 1 has the rows." in [t for _, t in found.words]
