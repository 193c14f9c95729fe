"""Building the site: the same bytes twice, nothing executed twice, nothing of this machine in it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from lanelab.errors import BadFile, LabError, NoSpace, NotFound
from lanelab.publish.site import render
from lanelab.publish.site.build import build
from lanelab.publish.site.config import SiteFolders


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_second_build_is_byte_identical_and_executes_nothing(demo_lab):
    before = tree(demo_lab.folders.built)
    built = build(demo_lab.root, renderer="fallback", force=True)
    assert built.executed == 0 and built.notebooks == 1 and not built.unchanged
    assert tree(demo_lab.folders.built) == before


def test_unchanged_site_is_not_built_again(demo_lab):
    assert build(demo_lab.root, renderer="fallback").unchanged
    demo_lab.edit(demo_lab.post("companion"), "share the work", "share all work")
    assert not build(demo_lab.root, renderer="fallback").unchanged
    assert "share all work" in (demo_lab.folders.built / "posts/demo/companion.html").read_text("utf-8")
    assert build(demo_lab.root, renderer="fallback").unchanged


def test_site_that_somebody_touched_is_built_again(demo_lab):
    page = demo_lab.folders.built / "posts/demo/index.html"
    before = page.read_bytes()
    page.write_bytes(before + b"<!-- touched -->")
    assert not build(demo_lab.root, renderer="fallback").unchanged
    assert page.read_bytes() == before


def test_cold_build_elsewhere_gives_the_same_bytes(demo_lab, tmp_path, monkeypatch):
    other = tmp_path / "quite" / "another place"
    shutil.copytree(demo_lab.root, other)
    folders = SiteFolders(other)
    for folder in (folders.cache, folders.built, folders.notebooks):
        shutil.rmtree(folder)
    for path in other.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    monkeypatch.setenv("LANELAB_ROOT", str(other))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert build(other, renderer="fallback").executed == 1
    assert tree(folders.built) == tree(demo_lab.folders.built)


@pytest.mark.parametrize("changed", ["notebook", "receipts", "facts"])
def test_what_a_notebook_shows_from_is_executed_again(demo_lab, changed):
    campaign = demo_lab.folders.campaign("demo")
    if changed == "notebook":
        demo_lab.edit(demo_lab.root / "notebooks" / "04-decode.ipynb", "Every row.", "All rows.")
    elif changed == "receipts":
        demo_lab.add_receipt("knee-0002")
    else:
        demo_lab.edit(campaign / "facts.yaml", "best aggregate speed", "highest aggregate speed")
    assert build(demo_lab.root, renderer="fallback").executed == 1


def test_a_new_run_or_journal_executes_nothing(demo_lab):
    campaign = demo_lab.folders.campaign("demo")
    for name in ("runs/04-decode/one", "journal"):
        (campaign / name).mkdir(parents=True)
        (campaign / name / "log.txt").write_text("a log")
    assert build(demo_lab.root, renderer="fallback").executed == 0


def test_executed_notebook_holds_no_trace_of_the_execution(demo_lab):
    text = (demo_lab.folders.notebooks / "demo" / "04-decode.ipynb").read_text("utf-8")
    notebook = json.loads(text)
    assert str(demo_lab.root) not in text and "papermill" not in text and "shell.execute_reply" not in text
    assert {cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"} == {None}
    assert 'fig-alt: "Speed grows, then stays flat."' in "".join(c["source"] for c in notebook["cells"])


def test_campaign_without_receipts_is_skipped_and_said(demo_lab):
    (demo_lab.root / "site" / "site.yaml").write_text("campaigns: [here, demo]\n")
    built = build(demo_lab.root, renderer="fallback")
    assert built.campaigns == ["demo"] and "make campaign" in built.skipped["here"]
    assert "make campaign" in (demo_lab.folders.built / "index.html").read_text("utf-8")


def test_unknown_campaign(demo_lab):
    (demo_lab.root / "site" / "site.yaml").write_text("campaigns: [demmo]\n")
    with pytest.raises(NotFound, match="did you mean 'demo'"):
        build(demo_lab.root, renderer="fallback")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("campaigns: [demo]\nurls: x\n", "urls"),
        ("campaigns: []\n", "campaigns"),
        ("campaigns: ['../x']\n", "../x"),
        ("campaigns: [demo]\nurl: nowhere\n", "nowhere"),
        ("campaigns: [demo\n", "YAML"),
    ],
)
def test_bad_site_yaml_is_named(demo_lab, text, why):
    (demo_lab.root / "site" / "site.yaml").write_text(text)
    with pytest.raises(BadFile, match=r"site\.yaml") as caught:
        build(demo_lab.root)
    assert why in str(caught.value)


def test_embed_of_nothing_names_page_line_and_cells(demo_lab):
    demo_lab.edit(demo_lab.post(), "04-decode.ipynb#tbl-knee", "04-decode.ipynb#tbl-kne")
    line = demo_lab.line_of(demo_lab.post(), "#tbl-kne ")
    with pytest.raises(BadFile, match=rf"index.qmd:{line}: .*tbl-kne.*tbl-knee"):
        build(demo_lab.root, renderer="fallback")


def test_full_disk_is_one_line_and_the_site_stays(demo_lab, monkeypatch):
    before = tree(demo_lab.folders.built)

    def full(*args, **given):
        raise OSError(errno.ENOSPC, "No space left on device", "site/.fallback/x")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(NoSpace, match="No space left"):
        build(demo_lab.root, renderer="fallback", force=True)
    assert tree(demo_lab.folders.built) == before


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 1, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'])
def test_broken_notebook_is_named(demo_lab, text):
    (demo_lab.root / "notebooks" / "04-decode.ipynb").write_text(text)
    with pytest.raises(BadFile, match=r"04-decode\.ipynb"):
        build(demo_lab.root, renderer="fallback")


def test_notebook_without_a_parameters_cell_cannot_be_told_not_to_measure(demo_lab):
    demo_lab.edit(demo_lab.root / "notebooks" / "04-decode.ipynb", '"parameters"\n', '"other"\n')
    with pytest.raises(LabError, match="no cell tagged 'parameters'"):
        build(demo_lab.root, renderer="fallback")


def test_step_without_a_notebook(demo_lab):
    demo_lab.edit(demo_lab.folders.campaign("demo") / "campaign.yaml", "step: 04-decode", "step: 04-decod")
    with pytest.raises(NotFound, match="did you mean '04-decode'"):
        build(demo_lab.root, renderer="fallback")


@pytest.mark.parametrize("text", ["project: [", "project: 1\n", "[]\n"])
def test_broken_project_file_is_named(demo_lab, text):
    (demo_lab.root / "site" / "_quarto.yml").write_text(text)
    with pytest.raises(BadFile, match=r"_quarto\.yml"):
        build(demo_lab.root, renderer="fallback")


def test_quarto_asked_for_and_missing(demo_lab, monkeypatch):
    monkeypatch.setattr(render, "quarto_path", lambda: None)
    with pytest.raises(render.NoQuarto, match="--fallback"):
        build(demo_lab.root, renderer="quarto")


def test_quarto_that_fails_is_one_line(demo_lab, tmp_path, monkeypatch):
    quarto = tmp_path / "quarto"
    quarto.write_text("#!/bin/sh\necho 'ERROR: YAMLException: bad indentation' >&2\nexit 1\n")
    quarto.chmod(0o755)
    monkeypatch.setattr(render, "quarto_path", lambda: str(quarto))
    with pytest.raises(LabError, match="quarto exits with 1: ERROR: YAMLException"):
        build(demo_lab.root)


def test_footer_says_which_renderer(demo_lab):
    text = (demo_lab.folders.built / "index.html").read_text("utf-8")
    assert "smalldocs 0.5.4</a>" in text and ">Quarto</a>" not in text


def test_feed_is_dated_by_the_post_and_needs_an_address(demo_lab):
    feed = demo_lab.folders.built / "feed.xml"
    assert not feed.exists()
    build(demo_lab.root, renderer="fallback", url="https://lab.example/site")
    text = feed.read_text("utf-8")
    assert "<link>https://lab.example/site/posts/demo/index.html</link>" in text
    assert "Fri, 02 Jan 2026 00:00:00 +0000" in text
    page = (demo_lab.folders.built / "posts/demo/index.html").read_text("utf-8")
    assert "https://lab.example/site/" in page and "feed.xml" in page
    first = tree(demo_lab.folders.built)
    build(demo_lab.root, renderer="fallback", url="https://lab.example/site")
    assert tree(demo_lab.folders.built) == first
