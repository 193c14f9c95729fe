"""The gate sees each thing that may not be published, and names file and line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lanelab.cli.main import main
from lanelab.errors import LabError
from lanelab.publish.ledger import BrokenReceipt
from lanelab.publish.site.build import build
from lanelab.publish.site.check import Finding, NotBuilt, check, check_source
from lanelab.publish.site.source import read_page
from lanelab.receipts import Store


def found(lab, rule: str) -> list[Finding]:
    return [finding for finding in check(lab.root) if finding.rule == rule]


def rebuilt(lab) -> None:
    build(lab.root, renderer="fallback", force=True)


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def test_a_sound_site_passes(demo_lab):
    assert check(demo_lab.root) == []


def test_site_that_was_never_built(demo_lab):
    (demo_lab.folders.built / "index.html").unlink()
    with pytest.raises(NotBuilt, match="lanelab site build"):
        check(demo_lab.root)


def test_digit_in_prose(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "Nothing else in 17 minutes.")
    finding = only(found(demo_lab, "digit"))
    assert finding.file == "site/posts/demo/index.qmd"
    assert finding.line == demo_lab.line_of(demo_lab.post(), "17 minutes")
    assert "'17'" in finding.message
    assert finding.severity == "error"


def test_digit_in_a_draft_only_warns(demo_lab):
    demo_lab.edit(demo_lab.post(), "date: 2026-01-02\n", "date: 2026-01-02\ndraft: true\n")
    demo_lab.edit(demo_lab.post(), "Nothing else.", "Nothing else in 17 minutes.")
    assert only(found(demo_lab, "digit")).severity == "warning"


@pytest.mark.parametrize(
    "typed",
    ["A [7101 tok/s]{.fact} number.", '<span class="fact">7101 tok/s</span>', "```{=html}\n<p>7101 tok/s</p>\n```"],
)
def test_a_typed_fact_or_raw_html_is_a_digit_in_prose(demo_lab, typed):
    demo_lab.edit(demo_lab.post(), "Nothing else.", typed)
    assert only(found(demo_lab, "digit")).line == demo_lab.line_of(demo_lab.post(), "7101")


def test_digit_in_an_included_file(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "Text.\n\n{{< include _a.md >}}")
    folder = demo_lab.post().parent
    (folder / "_a.md").write_text("Fine.\n\n{{< include _b.md >}}\n", "utf-8")
    (folder / "_b.md").write_text("Fine.\n\nIt took 17 minutes.\n\n{{< include _a.md >}}\n", "utf-8")
    finding = next(check_source(read_page(demo_lab.post()), demo_lab.folders, {"demo": {"knee": ""}}))
    assert (finding.file, finding.line, finding.rule) == ("site/posts/demo/_b.md", 3, "digit")


@pytest.mark.parametrize("line", ["author: Unit 7101", "categories: [decode, 7101 tok/s]", "abstract: {text: 7101}"])
def test_digit_in_any_field_of_front_matter(demo_lab, line):
    demo_lab.edit(demo_lab.post(), "date: 2026-01-02\n", f"date: 2026-01-02\n{line}\ntoc-depth: 3\n")
    assert only(found(demo_lab, "digit")).line == demo_lab.line_of(demo_lab.post(), "7101")


def test_footnotes_and_callout_titles_raise_no_false_alarm(demo_lab):
    written = (
        "A note.[^why] Another.[^b]\n\n[^why]: Because of *this* and `code 7`; {{< var demo.knee >}}.\n"
        "[^b]: See [the companion](companion.qmd).\n\n"
        '::: {.callout-warning title="It is *not* `hanging 3`; really"}\nWords.\n:::\n\n'
        '::: {.callout-tip title="Fact {{< var demo.knee >}}" collapse="true"}\nWords.\n:::\n\n'
        "::: {.callout-note}\n## Own title\n\nWords.[^why2]\n:::\n\n[^why2]: Last.\n"
    )
    demo_lab.edit(demo_lab.post(), "Nothing else.", written)
    rebuilt(demo_lab)
    assert check(demo_lab.root) == []


@pytest.mark.parametrize("field", ["title", "subtitle", "answer"])
def test_digit_in_front_matter(demo_lab, field):
    text = demo_lab.post().read_text("utf-8")
    demo_lab.post().write_text(re.sub(rf"^{field}: .*$", f'{field}: "Twice in 17 minutes"', text, flags=re.M), "utf-8")
    finding = only(found(demo_lab, "digit"))
    assert finding.line == demo_lab.line_of(demo_lab.post(), "17 minutes")


def test_digit_in_a_notebooks_text(demo_lab):
    source = demo_lab.root / "notebooks" / "04-decode.ipynb"
    demo_lab.edit(source, 'Speed over streams."', 'Speed over 17 streams."')
    rebuilt(demo_lab)
    finding = only(found(demo_lab, "digit"))
    assert finding.file == "notebooks/04-decode.ipynb"


def test_unresolved_reference(demo_lab):
    demo_lab.edit(demo_lab.post(), "@fig-knee shows why", "@fig-kne shows why")
    rebuilt(demo_lab)
    named = found(demo_lab, "reference")
    assert {finding.line for finding in named} == {demo_lab.line_of(demo_lab.post(), "@fig-kne ")}
    assert any("fig-knee" in finding.message for finding in named), "the valid names are listed"


def test_section_reference_needs_numbered_sections(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "See @sec-not.")
    assert found(demo_lab, "reference")
    demo_lab.edit(demo_lab.post(), "date: 2026-01-02\n", "date: 2026-01-02\nnumber-sections: true\n")
    rebuilt(demo_lab)
    assert check(demo_lab.root) == []
    assert "Section\u00a02" in (demo_lab.folders.built / "posts/demo/index.html").read_text("utf-8")


def test_unknown_fact(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "Nothing else {{< var demo.kneee >}}.")
    rebuilt(demo_lab)
    finding = only(found(demo_lab, "fact"))
    assert finding.line == demo_lab.line_of(demo_lab.post(), "demo.kneee")
    assert "did you mean demo.knee?" in finding.message
    assert {f.line for f in found(demo_lab, "reference")} == {finding.line}


@pytest.mark.parametrize("left", ["{{< unknown thing >}}", "{{< embed nb.ipynb#x >}} in a line"])
def test_literal_shortcode(demo_lab, left):
    demo_lab.edit(demo_lab.post(), "Nothing else.", f"Nothing else {left}.")
    rebuilt(demo_lab)
    lines = {finding.line for finding in found(demo_lab, "shortcode")}
    assert lines == {demo_lab.line_of(demo_lab.post(), left)}, check(demo_lab.root)


def test_inline_python(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "It is `{python} x`.")
    assert only(found(demo_lab, "python")).line == demo_lab.line_of(demo_lab.post(), "{python}")


def test_executable_cell(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "```{python}\nprint(1)\n```\n")
    assert only(found(demo_lab, "code")).line == demo_lab.line_of(demo_lab.post(), "```{python}")


def test_error_output(demo_lab):
    path = demo_lab.folders.notebooks / "demo" / "04-decode.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"][-1]["outputs"] = [
        {"output_type": "error", "ename": "ValueError", "evalue": "no rows", "traceback": []}
    ]
    path.write_text(json.dumps(notebook, indent=1), "utf-8")
    finding = next(f for f in found(demo_lab, "error-output"))
    assert finding.file == "site/notebooks-out/demo/04-decode.ipynb"
    assert "ValueError: no rows" in finding.message
    assert finding.line == demo_lab.line_of(path, '"output_type": "error"')


def test_notebook_that_raises_stops_the_build(demo_lab):
    source = demo_lab.root / "notebooks" / "04-decode.ipynb"
    demo_lab.edit(source, "import time; started = time.time()", "raise RuntimeError('nothing to show')")
    before = (demo_lab.folders.built / "index.html").read_bytes()
    with pytest.raises(LabError, match=r"04-decode.ipynb fails for campaign 'demo' in cell 'guard': RuntimeError"):
        rebuilt(demo_lab)
    assert (demo_lab.folders.built / "index.html").read_bytes() == before, "the site that stood is kept"


def test_figure_without_alt_text(demo_lab):
    source = demo_lab.root / "notebooks" / "04-decode.ipynb"
    demo_lab.edit(source, "{'alt': 'Speed grows, then stays flat.'}", "{}")
    rebuilt(demo_lab)
    findings = found(demo_lab, "alt")
    assert {f.file for f in findings} >= {"site/_site/posts/demo/index.html", "site/_site/posts/demo/companion.html"}
    assert all(f.line > 1 for f in findings)


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("nowhere.qmd", "no such page or file"),
        ("companion.qmd#no-such-part", "has no anchor #no-such-part"),
        ("#no-such-part", "has no anchor #no-such-part"),
        ("../../../../outside.html", "out of the site"),
    ],
)
def test_dead_link(demo_lab, link, why):
    demo_lab.edit(demo_lab.post(), "(companion.qmd)", f"({link})")
    rebuilt(demo_lab)
    findings = found(demo_lab, "link")
    assert findings and why in findings[0].message
    assert findings[0].file == "site/_site/posts/demo/index.html"


def test_page_that_loads_from_elsewhere(demo_lab):
    demo_lab.edit(
        demo_lab.post(), "Nothing else.", "```{=html}\n<script src='https://cdn.example/x.js'></script>\n```\n"
    )
    rebuilt(demo_lab)
    assert "https://cdn.example/x.js" in only(found(demo_lab, "elsewhere")).message


def test_private_receipt(demo_lab):
    demo_lab.add_receipt("knee-secret", visibility="private")
    assert check(demo_lab.root) == []
    demo_lab.edit(demo_lab.post(), "Nothing else.", "As `knee-secret` shows.")
    rebuilt(demo_lab)
    files = {finding.file for finding in found(demo_lab, "private")}
    assert files == {"site/_site/posts/demo/index.html", "site/_site/search.json"}


def test_private_receipt_never_reaches_the_built_site(demo_lab):
    demo_lab.add_receipt("knee-secret", visibility="private")
    rebuilt(demo_lab)
    assert found(demo_lab, "private") == []
    names = [path for path in demo_lab.folders.built.rglob("*") if "knee-secret" in path.name]
    assert names == []


def test_secret(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", "Use `hf_abcdefgh12345678`.")
    rebuilt(demo_lab)
    findings = found(demo_lab, "secret")
    assert findings and all("hf_abcdefgh12345678" not in finding.message for finding in findings)


def test_path_of_this_machine(demo_lab):
    demo_lab.edit(demo_lab.post(), "Nothing else.", f"Look at `{demo_lab.root}/data`.")
    rebuilt(demo_lab)
    assert only([f for f in found(demo_lab, "private") if f.file.endswith("posts/demo/index.html")])


def flip_a_byte(lab) -> Path:
    path = next(Store(lab.folders.campaign("demo")).paths())
    path.write_bytes(path.read_bytes().replace(b'"aggregate_tok_s":42', b'"aggregate_tok_s":43'))
    return path


def test_flipped_byte_fails_the_check_and_the_build(demo_lab):
    path = flip_a_byte(demo_lab)
    finding = only(found(demo_lab, "receipt"))
    assert finding.file == path.relative_to(demo_lab.root).as_posix()
    with pytest.raises(BrokenReceipt, match=path.name):
        rebuilt(demo_lab)


def test_page_that_says_something_else_than_its_source(demo_lab):
    built = demo_lab.folders.built / "posts/demo/index.html"
    demo_lab.edit(built, "The knee stands at", "The knee stood at")
    finding = only(found(demo_lab, "page"))
    assert finding.file == "site/posts/demo/index.qmd" and "The knee stands at" in finding.message


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Figure\u00a01: Speed", "Figure\u00a02: Speed", "caption 1"),
        (">What was measured</h2>", ">What we measured</h2>", "heading 2"),
        (">8 streams</a>", ">9 streams</a>", "does not say"),
    ],
)
def test_heading_caption_and_number_are_held_to_the_source(demo_lab, old, new, what):
    demo_lab.edit(demo_lab.folders.built / "posts/demo/index.html", old, new)
    assert any(what in finding.message for finding in found(demo_lab, "page"))


def test_page_that_was_not_built(demo_lab):
    (demo_lab.root / "site/posts/demo/more.qmd").write_text("---\ntitle: More\n---\n\nWords.\n", "utf-8")
    assert "build the site again" in only(found(demo_lab, "page")).message


def test_command_line(demo_lab, capsys):
    assert main(["site", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"ok": True, "findings": []}
    demo_lab.edit(demo_lab.post(), "Nothing else.", "Nothing else in 17 minutes.")
    assert main(["site", "check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"site/posts/demo/index\.qmd:\d+: digit: '17'", line) for line in lines)
    assert lines[-1] == "2 errors, 0 warnings"  # the page is also older than its source
