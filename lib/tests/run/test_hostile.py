"""Notebooks and options that a run must survive: each ends with a status and one line."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lanelab.cli.main import main
from lanelab.receipts import verify
from lanelab.receipts.canonical import digest_of, parse_json
from lanelab.receipts.records import FORM, STATUSES, form
from lanelab.run import record
from lanelab.run.streams import OUTPUTS_BUDGET, CellStreams, size
from lanelab.run.verdict import plain

from .conftest import Call, cell_of, fixture, record_of, stored, text_of


def write(folder: Path, **cells: str) -> Path:
    """A notebook of these code cells, by id."""
    path = folder / "made.ipynb"
    made = new_notebook(cells=[new_code_cell(source, id=name) for name, source in cells.items()])
    nbformat.write(made, path)
    return path


@pytest.mark.parametrize("option", ["--timeout-s", "--cell-timeout-s", "--start-timeout-s"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0"])
def test_a_limit_must_be_finite(lab: Path, capsys: pytest.CaptureFixture[str], option: str, value: str) -> None:
    assert main(["run", str(fixture("ok")), option, value]) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err and option in err and len(err.strip().splitlines()) == 1
    assert not (lab / "data/campaigns/here").exists()


def test_a_notebook_that_removes_its_folder(call: Call, tmp_path: Path) -> None:
    path = write(
        tmp_path, first="print('kept')", remove="import os, shutil\nshutil.rmtree(os.getcwd())", after="print('on')"
    )
    code, answer, _ = call("run", path, "--run-dir", tmp_path / "runs")
    assert (code, answer["status"], answer["cause"]) == (1, "failed", "folder_removed")
    assert "folder was removed by the notebook" in answer["reason"]
    assert text_of(cell_of(stored(answer), "first")) == "kept\n"
    folder = Path(answer["run_dir"])
    assert "first" in (folder / "log.txt").read_text()
    assert record_of(answer)["status"] == "failed" and set(record_of(answer)["files"]) >= {"log.txt", "notebook.ipynb"}


def test_a_notebook_that_puts_a_folder_in_its_records_place(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path, swap="import os\nos.remove('run.json')\nos.makedirs('run.json/x')")
    code, answer, err = call("run", path, "--run-dir", tmp_path / "runs")
    assert code == 1 and answer["error"]["type"] == "CannotWrite" and "run.json" in err


def test_an_output_too_large_is_left_out_before_anything_walks_over_it(call: Call, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        big="from IPython.display import HTML, display\ndisplay(HTML('y' * 9_000_000))",
        value="'z' * 3_000_000",
        table="display(HTML('<b>small</b>'))",
        boom="raise ValueError('w' * 5_000_000)",
    )
    began = time.monotonic()
    code, answer, _ = call("run", path, "--run-dir", tmp_path / "runs", "--timeout-s", "60")
    assert time.monotonic() - began < 30 and (code, answer["status"]) == (1, "failed")
    notebook = stored(answer)
    assert "1 output too large" in answer["warnings"][0]
    for name, mime in (("big", "text/html"), ("value", "text/plain")):
        data = cell_of(notebook, name).outputs[0].data
        assert list(data) == ["text/plain"] and mime in data["text/plain"] and "left out" in data["text/plain"]
    assert cell_of(notebook, "table").outputs[0].data["text/html"] == "<b>small</b>"
    assert Path(answer["notebook"]).stat().st_size < 300_000 and len(answer["reason"]) < 1000


def test_all_outputs_together_stay_in_their_budget() -> None:
    streams = CellStreams()
    kept = 0
    for number in range(30):
        streams.begin(f"cell-{number}")
        content: dict[str, Any] = {"data": {"image/png": "A" * 200_000, "text/plain": "<Figure>"}, "metadata": {}}
        streams.bundle(content)
        kept += size(content["data"])
        if "image/png" not in content["data"]:
            assert content["data"]["text/plain"].endswith("<Figure>")
    assert 1_500_000 < kept < OUTPUTS_BUDGET + 30 * 1000 and sum(map(len, streams.left_out.values())) > 15


def test_a_picture_that_is_drawn_again_and_again_counts_once() -> None:
    streams = CellStreams()
    streams.begin("loop")
    for _ in range(50):
        content: dict[str, Any] = {"data": {"image/png": "A" * 400_000}, "metadata": {}}
        streams.bundle(content)
        assert "image/png" in content["data"]
        streams.forget()
    assert streams.left_out == {}


def test_a_kernel_that_leaves_at_once_stopped_in_the_cell_it_was_sent(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path, c0="1", c1="import os\nos._exit(0)", c2="2")
    code, answer, _ = call("run", path, "--run-dir", tmp_path / "runs")
    assert (code, answer["status"]) == (1, "died") and "in cell 'c1'" in answer["reason"]
    assert answer["cells"] == {"executed": ["c0"], "stopped_in": "c1", "not_executed": ["c2"]}


def test_a_reason_can_be_printed(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path, boom=r"raise ValueError('a\n\x1b[2Jb\x07\x00c')")
    _, answer, err = call("run", path, "--run-dir", tmp_path / "runs")
    assert answer["reason"] == "ValueError: a b c (cell 'boom')" and "\x1b" not in err
    assert record_of(answer)["reason"] == answer["reason"]


def test_plain_takes_whole_escapes() -> None:
    assert plain("a\x1b[31mred\x1b[0m \x1b]0;title\x07b\x1b") == "ared b" and plain("ü \u2028 x\x85") == "ü x"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[1,2]", "must be a JSON object"), (b'{"cells": NaN}', "must be a JSON object"), (b"", "not JSON"),
        (b"root:x:0:0:secret-line\n", "not JSON"), (b"\xff\xfe", "not JSON"), (b"[" * 100_000, "not JSON"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [7]}', "is not a notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"root:x": "secret-line"}]}', "not a notebook"),
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_said_in_one_line(call: Call, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    code, answer, err = call("run", path)
    assert code == 2 and words in answer["reason"] and "is not a notebook" in answer["reason"]
    assert "secret-line" not in err and "Error" not in answer["reason"] and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(("path", "words"), [("/etc", "a folder"), ("/dev/zero", "a device"), ("/no/such", "no such")])
def test_a_path_that_is_no_file_is_called_what_it_is(call: Call, path: str, words: str) -> None:
    code, answer, _ = call("run", path)
    assert code == 2 and words in answer["reason"] and (words == "no such") == ("no such" in answer["reason"])


def test_nothing_to_execute_and_two_parameters_cells_are_refused(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Title"), new_code_cell("  \n")]), path)
    code, answer, _ = call("run", path)
    assert (code, answer["status"]) == (2, "refused") and "nothing to execute" in answer["reason"]
    tagged = [new_code_cell(f"x = {name!r}", id=name, metadata={"tags": ["parameters"]}) for name in ("one", "two")]
    nbformat.write(new_notebook(cells=tagged), path)
    code, answer, _ = call("run", path)
    assert (code, answer["status"]) == (2, "refused") and "'one', 'two'" in answer["reason"]


def test_a_finished_run_is_held_by_its_record(call: Call, lab: Path, tmp_path: Path) -> None:
    _, answer, _ = call("run", write(tmp_path, a="1"))
    campaign_dir = lab / "data/campaigns/here"
    path = Path(answer["run_dir"]) / "run.json"
    assert path.is_relative_to(campaign_dir) and verify.campaign(campaign_dir, extra=False) == []
    value = parse_json(path.read_bytes())
    assert value["digest"] == digest_of(value)
    path.chmod(0o644)
    path.write_text(json.dumps({**value, "seconds": 0.5}))
    assert [problem.what for problem in verify.campaign(campaign_dir, extra=False)] == ["digest"]


def test_odd_values_keep_a_record_whole() -> None:
    made = record.Run(
        id="r", status="ok", campaign="c", step="s", kernel="python3", notebook="x\udcff.ipynb", notebook_sha256="0",
        started="2026-01-01T00:00:00Z", finished="2026-01-01T00:00:01Z", seconds=1e16,
        parameters={"n": record.Value(type="int", value=2**60 + 1, passed=True),
                    "f": record.Value(type="float", value=float("inf"), passed=False)},
    )  # fmt: skip
    value = parse_json(made.file_bytes())
    assert value["digest"] == digest_of(value) and form(value) is None


def test_the_form_that_verify_checks_is_the_records() -> None:
    names = {field.alias or name for name, field in record.Run.model_fields.items()}
    assert names == set(FORM) and set(STATUSES) == set(record.Status.__args__)  # type: ignore[attr-defined]
