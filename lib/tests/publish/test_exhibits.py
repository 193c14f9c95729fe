"""Figures and tables: known answers, the same bytes twice, readable without colour, light and dark."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lanelab.cli.plan import plan as plan_cli
from lanelab.publish import again, data_links, exhibit, shown, style
from lanelab.publish.reader import Reader
from lanelab.publish.summary import busy_note


@pytest.fixture
def loaded(bench):
    """Two boots with a decode and a knee each, one contended row, one failure."""
    bench.receipt(
        "boot-0001", "boot", [{"version": "b1", "ordinal": 0, "change": "the control", "outcome": "serving"}], boot="b1"
    )
    bench.receipt("boot-0002", "boot", [{"version": "b2", "ordinal": 1, "change": "a | pipe", "outcome": "oom_device", "reason": "too big"}],
                  boot="b2")  # fmt: skip
    for boot, factor in (("b1", 1.0), ("b2", 1.5)):
        bench.decode(f"decode-{boot}-1k", [20 * factor, 21 * factor, 22 * factor], boot=boot)
        bench.decode(f"decode-{boot}-4k", [18 * factor] * 3, size="4K", tokens=4096, boot=boot)
        bench.knee(
            f"knee-{boot}",
            {1: [20 * factor], 2: [38 * factor], 4: [60 * factor, 62 * factor], 8: [63 * factor]},
            boot=boot,
        )
    bench.knee("knee-b2-noisy", {8: [5.0]}, boot="b2", row_state="contended")
    bench.receipt("needle-0001", "needle", [
        {"task": "needle", "size_tokens": 4096, "depth": 0.5, "prompt_tokens": 4000, "passed": True, "ttft_s": 1.0},
        {"task": "needle", "size_tokens": 8192, "depth": 0.9, "prompt_tokens": 8000, "passed": False, "ttft_s": 2.0},
        {"task": "decode", "size_tokens": 8192, "prompt_tokens": 8000, "decode_tok_s": 12.0},
    ])  # fmt: skip
    bench.receipt("coverage-0001", "coverage", [
        {"ranking": ranking, "traffic": "chat", "held_out": ranking != "chat", "hot_cells": n, "cells": 100, "share": min(1.0, n / 100 * gain)}
        for ranking, gain in (("chat", 2.0), ("code", 1.2)) for n in range(10, 100, 10)
    ], origin="derived")  # fmt: skip
    return bench


def test_knee_rows_mark_the_knee_and_keep_contended_rows_apart(loaded) -> None:
    rows = exhibit.figure_named("knee").rows(Reader(loaded.dir))
    b1 = [row for row in rows if row["series"] == "b1"]
    assert [(row["streams"], row["n"], row["aggregate_tok_s"], row["knee"]) for row in b1] == [
        (1, 1, 20, False), (2, 1, 38, False), (4, 2, 61, True), (8, 1, 63, False)
    ]  # fmt: skip
    noisy = [row for row in rows if row["state"] == "contended"]
    assert [(row["series"], row["streams"], row["aggregate_tok_s"], row["knee"]) for row in noisy] == [
        ("b2", 8, 5.0, False)
    ]
    assert (
        next(row for row in rows if row["series"] == "b2" and row["streams"] == 8 and row["state"] == "warm")[
            "aggregate_tok_s"
        ]
        == 94.5
    )


def test_decode_rows_have_n_median_and_range(loaded) -> None:
    row = exhibit.figure_named("decode").rows(Reader(loaded.dir))[0]
    assert (row["series"], row["size"], row["n"], row["decode_tok_s"], row["decode_tok_s_low"], row["decode_tok_s_high"]) == (
        "b1", "1K", 3, 21, 20, 22
    )  # fmt: skip
    assert row["receipts"] == ["decode-b1-1k"]


def test_ladder_takes_the_control_as_baseline(loaded) -> None:
    rows = exhibit.figure_named("ladder").rows(Reader(loaded.dir))
    assert [(row["series"], row["baseline"], row["of_baseline_pct"]) for row in rows] == [
        ("b1", "b1", 100),
        ("b2", "b1", 150),
    ]
    assert rows[1]["receipts"] == sorted(
        ["decode-b1-1k", "decode-b2-1k"] if rows[0]["size"] == "1K" else ["decode-b1-4k", "decode-b2-4k"]
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("knee", ["b2, the highest of 2", "knee stands at 4 streams", "91.5 tok/s", "no request failed"]),
        ("decode", ["b2, the fastest of 2", "31.5 to 27.0 tok/s", "1,024 to 4,096 tokens", "n = 3"]),
        ("ladder", ["150 % of the baseline b1"]), ("needles", ["1 of 2 hidden codes found", "8,000 tokens"]),
        ("coverage", ["loses up to 40 points", "with 50 % of the cells hot"]),
    ],
)  # fmt: skip
def test_alt_text_states_the_finding(loaded, name: str, words: list[str]) -> None:
    made = exhibit.figure_named(name)
    alt = made.alt(made.rows(Reader(loaded.dir)))
    for word in words:
        assert word in alt, alt
    assert alt.endswith(".") and "\n" not in alt


@pytest.mark.parametrize("name", ["knee", "decode", "ladder", "needles", "coverage"])
def test_a_figure_is_the_same_bytes_twice_and_carries_both_themes(loaded, name: str) -> None:
    made = exhibit.figure_named(name)
    first, second = (shown.figure(made, Reader(loaded.dir), lane="mini", site=True)[0] for _ in range(2))
    svg = first.data["image/svg+xml"]
    assert svg == second.data["image/svg+xml"]
    assert first.metadata["alt"] == made.alt(made.rows(Reader(loaded.dir)))
    root = ElementTree.fromstring(svg)
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) and all(one.startswith(f"trial-{name}-") for one in ids)
    for target in re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', svg):
        assert target in ids
    assert "prefers-color-scheme: dark" in svg and "var(--ll-ink)" in svg
    assert not re.search(r"(?:fill|stroke): #", svg), "a colour that dark mode cannot change"
    assert root.findall(".//{http://www.w3.org/2000/svg}text"), "text must stay text"
    assert not re.search(r"\d{4}-\d{2}-\d{2}T", svg) and "matplotlib.org" not in svg


def test_series_differ_by_marker_and_not_by_colour_alone() -> None:
    from lanelab.publish.figures.parts import look

    looks = [look(number) for number in range(len(style.SERIES) * 2)]
    assert len({one[1:] for one in looks}) == len(looks)


def test_drawing_leaves_matplotlib_as_it_was(loaded) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    made = exhibit.figure_named("knee")
    style.svg_of(made.draw(made.rows(Reader(loaded.dir))), "x", "y")
    assert dict(matplotlib.rcParams) == before


def test_a_tables_pipes_stay_in_their_cells(loaded) -> None:
    text = shown.table(exhibit.table_named("boots"), Reader(loaded.dir), lane="mini", site=True)[0].data[
        "text/markdown"
    ]
    lines = text.splitlines()
    assert len(lines) == 4 and r"a \| pipe" in lines[3]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(re.findall(r"(?<!\\)\|", lines[0]))}
    assert "[`boot-0001`](/receipts/trial/boot-0001.html" in lines[2]


def test_contended_rows_are_labelled(loaded) -> None:
    parts = shown.table(exhibit.table_named("knee"), Reader(loaded.dir), lane="mini", site=True)
    assert "| contended |" in parts[0].data["text/markdown"]
    assert "enter no median" in parts[1].data["text/markdown"]


@pytest.mark.parametrize("name", ["knee", "decode", "ladder", "needles", "coverage"])
def test_nothing_measured_is_a_note_and_no_exception(bench, name: str) -> None:
    parts = shown.figure(exhibit.figure_named(name), Reader(bench.dir), lane="mini", site=True)
    assert len(parts) == 1 and "Nothing measured yet" in parts[0].data["text/markdown"]


def test_every_table_copes_with_an_empty_campaign(bench) -> None:
    exhibit.load_all()
    for made in exhibit.TABLES.values():
        assert (
            "Nothing measured yet"
            in shown.table(made, Reader(bench.dir), lane=None, site=True)[0].data["text/markdown"]
        )


def test_data_line_has_links_and_the_command(loaded) -> None:
    made = exhibit.figure_named("knee")
    text = shown.figure(made, Reader(loaded.dir), lane="mini", site=True)[1].data["text/markdown"]
    assert "[CSV](/data/trial/fig-knee.csv)" in text and "`lanelab measure knee --lane mini --campaign trial`" in text
    assert "CSV" not in shown.figure(made, Reader(loaded.dir), lane="mini", site=False)[1].data["text/markdown"]


def test_the_command_of_a_plan_is_the_plan_itself(loaded) -> None:
    """Two ways to one plan: the printed command, parsed by the command line, asks for what the receipt holds."""
    about = {
        "model": "mimo-v2.6-pro", "machine": "gb300",
        "parameters": {"context": 262144, "coverage": 0.618, "hot_gib": 152.8, "dtypes": [["o_proj", "fp8"]], "depth": None},
    }  # fmt: skip
    words = shlex.split(again.plan_command(about))
    assert words[:2] == ["lanelab", "plan"]
    read = plan_cli.make_context("plan", words[2:]).params
    asked = (read["model"], read["machine_name"], read["context"], read["coverage"], read["hot_gib"])
    assert asked == ("mimo-v2.6-pro", "gb300", 262144, 0.618, 152.8)
    assert "o_proj=fp8" in str(read)


def test_rows_of_a_run_are_measured_again_by_their_step() -> None:
    reader = Reader(Path(__file__).resolve().parents[3] / "data" / "campaigns" / "mini")
    made = exhibit.figure_named("knee")
    assert again.again(made, made.rows(reader), reader, "mini").endswith(
        "`lanelab campaign run mini --rerun 04-decode`"
    )


def test_a_machine_that_others_used_meanwhile_is_told() -> None:
    """The first measurement of the real vLLM had company, the second had not; both stay on record."""
    reader = Reader(Path(__file__).resolve().parents[3] / "data" / "campaigns" / "vllm-cpu")
    loud, quiet = sorted((reader.campaign_dir / "receipts" / "knee").glob("*.json"))
    assert reader.others_busy_cores([loud.stem], "knee") == 1.4
    rows = exhibit.figure_named("knee").rows(reader)
    assert {row["others_busy_cores"] for row in rows} == {0.04} and {row["receipts"][0] for row in rows} == {quiet.stem}
    assert busy_note(rows) == ""
    assert "up to 1.4 cores busy" in busy_note([{**rows[0], "others_busy_cores": 1.4}, *rows])


def test_a_knee_at_the_highest_level_is_said_not_to_be_reached(bench) -> None:
    bench.knee("knee-0001", {1: [20.0], 2: [40.0], 4: [80.0]})
    made = exhibit.figure_named("knee")
    rows = made.rows(Reader(bench.dir))
    assert [(row["streams"], row["knee"], row["beyond"]) for row in rows] == [
        (1, False, False),
        (2, False, False),
        (4, True, True),
    ]
    assert "no knee was reached up to 4 streams" in made.alt(rows)
    assert "(no knee up to 4)" in shown.figure(made, Reader(bench.dir), lane=None, site=True)[0].data["image/svg+xml"]
    assert (
        "not reached"
        in shown.table(exhibit.table_named("knee"), Reader(bench.dir), lane=None, site=True)[0].data["text/markdown"]
    )


def test_data_files_hold_what_is_drawn(loaded, tmp_path: Path) -> None:
    paths = data_links.write(tmp_path / "site", [loaded.dir])
    rows = exhibit.figure_named("knee").rows(Reader(loaded.dir))
    folder = tmp_path / "site" / "data" / "trial"
    with open(folder / "fig-knee.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert [(row["series"], int(row["streams"]), float(row["aggregate_tok_s"])) for row in read] == [
        (row["series"], row["streams"], row["aggregate_tok_s"]) for row in rows
    ]
    assert json.loads((folder / "fig-knee.json").read_text())["rows"] == rows
    before = {path: path.stat().st_mtime_ns for path in paths}
    assert {path: path.stat().st_mtime_ns for path in data_links.write(tmp_path / "site", [loaded.dir])} == before


def test_a_cell_that_looks_like_a_formula_is_quoted() -> None:
    assert (
        data_links.csv_text([{"a": "=HYPERLINK(1)", "b": -1.5, "c": ["x", "y"], "d": None}])
        == "a,b,c,d\n'=HYPERLINK(1),-1.5,x y,\n"
    )


def test_every_exhibit_names_a_view_that_exists() -> None:
    from lanelab.receipts.kinds import load_all

    exhibit.load_all()
    known = {kind.view for kind in load_all().values()}
    for made in [*exhibit.FIGURES.values(), *exhibit.TABLES.values()]:
        assert made.view in known, made.name


def test_what_others_published_is_measured_on_a_lane_of_ones_own(bench) -> None:
    bench.decode("decode-0001", [30.0], origin="published")
    text = shown.table(exhibit.table_named("decode"), Reader(bench.dir), lane="mini", site=True)[1].data[
        "text/markdown"
    ]
    assert "on a lane of yours: `lanelab measure decode --lane LANE`" in text
