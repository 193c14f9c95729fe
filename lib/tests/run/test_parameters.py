"""Parameters are read from the source and checked before anything is written."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab.run.parameters import UNREADABLE, BadParameter, Parameter, assignments, fit, read_text

from .conftest import Call, fixture

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_defaults_are_parsed_and_never_run() -> None:
    source = 'a = 1\nb: float = -2.5  # speed\na = "x=y"\nc = d = [1, (2, 3)]\ne = __import__("os").getcwd()\nif a:\n    f = 1\n'
    found = {item.name: item.default for item in assignments(source) or []}
    assert found == {"a": "x=y", "b": -2.5, "c": [1, (2, 3)], "d": [1, (2, 3)], "e": UNREADABLE}


@pytest.mark.parametrize("source", ["%time\na = 1", "a = ", "a = 1\0", "(" * 5000])
def test_a_cell_that_is_no_python(source: str) -> None:
    assert assignments(source) is None


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        ("on", "off", "off"), ("001", "007", "007"), ("x", "", ""), ("x", "a\\n", "a\\n"), (1000, "1e6", 1_000_000),
        (1, "-3", -3), (1, "2.0", 2), (0.5, "2", 2.0), (0.5, "1e-3", 0.001), (True, "false", False), (False, "true", True),
        ([1], "[1, 2]", [1, 2]), ((1,), "[3]", [3]), ({}, '{"a": 1}', {"a": 1}), (None, "null", None), (None, "4", 4),
        (None, "four", "four"),
    ],
)  # fmt: skip
def test_the_default_decides_how_a_text_is_read(default: object, text: str, value: object) -> None:
    read = read_text(Parameter("p", default), text)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    ("default", "text"),
    [
        (1, "1.5"), (1, "many"), (1, "1_000"), (1, "1e999999999"), (1, "NaN"), (1, ""), (1, " 1"), (0.5, "nan"),
        (0.5, "inf"), (0.5, "1e999"), (True, "False"), (True, "1"), (True, "off"), ([1], "1, 2"), ([1], "[1"),
        ([1], '{"a": 1}'), ([1], "[NaN]"), ({}, "[]"), ("x", "\udcff"), (b"x", "x"), (UNREADABLE, "1"), ({1}, "[1]"),
        ([1], "[" * 100000),
    ],
)  # fmt: skip
def test_a_text_that_does_not_fit_is_refused_by_name(default: object, text: str) -> None:
    with pytest.raises(BadParameter, match="'p'") as caught:
        read_text(Parameter("p", default), text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@given(JSON)
def test_text_and_value_agree(value: object) -> None:
    if isinstance(value, (list, dict, bool, float)):
        kind = Parameter("p", type(value)())
        assert read_text(kind, json.dumps(value)) == fit(kind, value) == value


@pytest.mark.parametrize(("default", "value"), [(1, True), (1, 1.0), (True, 1), ("x", 1), ([], "[]"), (0.5, "1"), (0.5, True),
                                                (None, {1}), (None, float("nan"))])  # fmt: skip
def test_a_plan_s_value_of_another_type_is_refused(default: object, value: object) -> None:
    with pytest.raises(BadParameter, match="'p'"):
        fit(Parameter("p", default), value)


def refused(call: Call, tmp_path: Path, *arguments: object) -> str:
    code, answer, err = call("run", *arguments, "--run-dir", tmp_path / "runs")
    assert (code, answer["status"], answer["run_dir"], answer["receipts"]) == (2, "refused", None, [])
    assert not answer["cells"]["executed"] and answer["cells"]["stopped_in"] is None
    assert not (tmp_path / "runs").exists(), "a refused run writes nothing"
    assert err.count("\n") == 1 and answer["reason"] in err
    return str(answer["reason"])


def test_refusals_name_what_is_wrong_and_what_is_valid(call: Call, tmp_path: Path, lab: Path) -> None:
    why = refused(call, tmp_path, fixture("ok"), "-p", "wrod=x")
    assert "'wrod'" in why and "did you mean 'word'" in why and "extra, flag, ratio, sizes, times, word" in why
    why = refused(call, tmp_path, fixture("ok"), "-p", "times=2.5")
    assert "'times'" in why and "'2.5'" in why and "int" in why
    why = refused(call, tmp_path, fixture("no-parameters-tag"), "-p", "size=2")
    assert "no cell is tagged 'parameters'" in why and "'settings'" in why
    why = refused(call, tmp_path, fixture("ok"), "-k", "no-such-kernel")
    assert "'no-such-kernel'" in why and "python3" in why
    assert "'nope'" in refused(call, tmp_path, "nope")
    assert "gone.ipynb" in refused(call, tmp_path, tmp_path / "gone.ipynb")
    assert "no parameter 'lane'" in refused(call, tmp_path, fixture("ok"), "--lane", "mini")
    assert "unknown campaign 'nowhere'" in refused(call, tmp_path, fixture("ok"), "--campaign", "nowhere")
    bad = tmp_path / "bad.ipynb"
    for content in (
        "",
        "{}",
        '{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
        "\ud800".encode("utf-8", "surrogatepass"),
    ):
        bad.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert "bad.ipynb" in refused(call, tmp_path, bad)
    assert not any((lab / "data" / "campaigns").iterdir())


def test_bad_usage(call: Call, tmp_path: Path) -> None:
    for arguments in (["-p", "word"], ["-p", "1x=2"], ["-p", "word=a", "-p", "word=b"], ["--cell-timeout-s", "0"]):
        code, answer, _ = call("run", fixture("ok"), *arguments)
        assert code == 2 and answer["error"]["type"] == "UsageError"


def test_no_tag_and_no_parameters_runs(call: Call, tmp_path: Path) -> None:
    code, answer, _ = call("run", fixture("no-parameters-tag"), "--run-dir", tmp_path)
    assert (code, answer["status"]) == (0, "ok")


def test_a_cell_that_the_author_skips_is_refused(call: Call, tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1", id="idle", metadata={"tags": ["skip-execution"]})]
    )
    nbformat.write(notebook, tmp_path / "skips.ipynb")
    assert "'idle'" in refused(call, tmp_path, tmp_path / "skips.ipynb")


def test_what_papermill_injects_is_what_was_chosen() -> None:
    from papermill.translators import PythonTranslator

    for value in ('it\'s "quoted" — Привет 漢字 \\n', "new\nline", "\x00", "'''"):
        assert ast.literal_eval(PythonTranslator.translate(value)) == value
