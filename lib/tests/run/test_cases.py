"""The twelve notebook traps: statuses, cells, receipts and exit codes as `expect.json` says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from .conftest import Call, cell_of, record_of, stored, text_of

CASES = Path(__file__).parents[3].parent / "shared" / "cases" / "notebooks"
EXPECT: dict[str, Any] = json.loads((CASES / "expect.json").read_text())["cases"] if CASES.is_dir() else {}
pytestmark = pytest.mark.skipif(not EXPECT, reason="the shared notebook cases are not beside this checkout")
PLAIN = ["kernel-killed", "cell-timeout", "exit-zero-midway", "error-after-partial", "parameter-types",
         "misspelt-parameter", "no-parameters-tag", "child-left-running", "huge-output",
         pytest.param("flushed-prints", marks=pytest.mark.slow)]  # fmt: skip


def options(invoke: dict[str, Any]) -> list[str]:
    given = [f"{key}={value}" for key, value in invoke.get("parameters_as_text", {}).items()]
    given += [f"{key}={json.dumps(value)}" for key, value in invoke.get("parameters", {}).items()]
    found = [part for item in given for part in ("-p", item)]
    if "cell_timeout_s" in invoke:
        found += ["--cell-timeout-s", str(invoke["cell_timeout_s"])]
    if "kernel" in invoke:
        found += ["-k", invoke["kernel"]]
    return found


def rows(run_dir: Path) -> list[dict[str, Any]]:
    path = run_dir / "receipts.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def same(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> bool:
    return len(expected) == len(found) and all(
        want.keys() == got.keys() and all(want[key] in ("any", got[key]) for key in want)
        for want, got in zip(expected, found, strict=True)
    )


def held(right: dict[str, Any], code: int, answer: dict[str, Any]) -> None:
    assert answer["status"] == right["status"]
    assert (code == 0) == (right["exit_code"] == "zero")
    if "cells" in right:
        assert answer["cells"] == right["cells"]
    if answer["run_dir"] is None:
        assert right["status"] == "refused" and right["receipts"] == []
        return
    if isinstance(right["receipts"], list):
        assert same(right["receipts"], rows(Path(answer["run_dir"])))
    record = record_of(answer)
    assert record["status"] == right["status"] and record["finished"] and record["cells"] == answer["cells"]
    notebook = stored(answer)
    done = set(right["cells"]["executed"])
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.id != "injected-parameters":
            assert (cell.metadata.papermill.status == "completed") == (cell.id in done)
            assert (cell.execution_count is None) == (cell.id in right["cells"]["not_executed"])


@pytest.mark.parametrize("name", PLAIN)
def test_case(name: str, call: Call, tmp_path: Path) -> None:
    case = EXPECT[name]
    earlier = tmp_path / "runs" / "earlier" / "notebook.ipynb"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("a good output")
    began = time.monotonic()
    code, answer, _ = call("run", CASES / case["notebook"], "--run-dir", tmp_path / "runs", *options(case["invoke"]))
    assert time.monotonic() - began < 60
    held(case["right"], code, answer)
    assert earlier.read_text() == "a good output"
    assert case["right"].get("reason", "") in (answer["reason"] or "")
    EXTRA.get(name, lambda answer: None)(answer)


def _killed(answer: dict[str, Any]) -> None:
    assert "about to die" in text_of(cell_of(stored(answer), "kill")) and "'kill'" in answer["reason"]


def _timeout(answer: dict[str, Any]) -> None:
    assert "waiting" in text_of(cell_of(stored(answer), "slow"))
    assert "'slow'" in answer["reason"] and "4 s" in answer["reason"]
    assert "KeyboardInterrupt" not in Path(answer["notebook"]).read_text()


def _left(answer: dict[str, Any]) -> None:
    assert all(part in answer["reason"] for part in ("SystemExit(0)", "'guard'", "2 cells"))


def _partial(answer: dict[str, Any]) -> None:
    assert "RuntimeError: lane answered 500 at 16384 tokens" in answer["reason"]
    assert text_of(cell_of(stored(answer), "sweep")) == "measured 1024\nmeasured 4096\n"


def _misspelt(answer: dict[str, Any]) -> None:
    assert all(word in answer["reason"] for word in ("concurency", "'concurrency'", "max_tokens", "receipts"))


def _untagged(answer: dict[str, Any]) -> None:
    assert "'parameters'" in answer["reason"] and "'settings'" in answer["reason"]


def _children(answer: dict[str, Any]) -> None:
    pids = [row["pid"] for row in rows(Path(answer["run_dir"])) if "pid" in row]
    assert len(pids) == 3 and not any(psutil.pid_exists(pid) for pid in pids)
    assert {item["pid"] for item in record_of(answer)["ended_processes"]} == set(pids) and answer["warnings"]


def _huge(answer: dict[str, Any]) -> None:
    notebook = stored(answer)
    text = text_of(cell_of(notebook, "flood"))
    assert "[000]" in text and "[049]" in text and "bytes cut here" in text and "bytes" in answer["warnings"][0]
    assert text_of(cell_of(notebook, "after")) == "tail line\n"
    assert Path(answer["notebook"]).stat().st_size < 2_000_000


def _flushed(answer: dict[str, Any]) -> None:
    cell = cell_of(stored(answer), "print")
    assert len(cell.outputs) <= 10
    assert text_of(cell) == "".join(f"line {i:05d} of 10000\n" for i in range(10000))


def _typed(answer: dict[str, Any]) -> None:
    types = {name: value["type"] for name, value in record_of(answer)["parameters"].items()}
    assert (types["budget"], types["ratio"], types["flag"], types["run_id"]) == ("int", "float", "bool", "str")


EXTRA = {
    "kernel-killed": _killed, "cell-timeout": _timeout, "exit-zero-midway": _left, "error-after-partial": _partial,
    "misspelt-parameter": _misspelt, "no-parameters-tag": _untagged, "child-left-running": _children,
    "huge-output": _huge, "flushed-prints": _flushed, "parameter-types": _typed,
}  # fmt: skip


def test_no_parameters_tag_without_parameters(call: Call, tmp_path: Path) -> None:
    right = EXPECT["no-parameters-tag"]["right"]["without_parameters"]
    code, answer, _ = call("run", CASES / "no-parameters-tag.ipynb", "--run-dir", tmp_path)
    assert (code, answer["status"]) == (0, right["status"])
    assert same(right["receipts"], rows(Path(answer["run_dir"])))


def test_rerun_with_an_unknown_kernel(call: Call, tmp_path: Path) -> None:
    case = EXPECT["rerun-unknown-kernel"]
    notebook = CASES / case["notebook"]
    code, first, _ = call("run", notebook, "--run-dir", tmp_path, *options(case["invoke"]["first"]))
    assert (code, first["status"]) == (0, "ok")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, answer, _ = call("run", notebook, "--run-dir", tmp_path, *options(case["invoke"]["then"]))
    held(case["right"], code, answer)
    assert "no-such-kernel" in answer["reason"] and "python3" in answer["reason"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("signame", ["SIGTERM", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_sigterm_midrun(lab: Path, tmp_path: Path, signame: str) -> None:
    case = EXPECT["sigterm-midrun"]
    runner = subprocess.Popen(
        [sys.executable, "-c", "from lanelab.cli.main import entry; entry()", "run", str(CASES / case["notebook"]),
         "--run-dir", str(tmp_path), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "LANELAB_ROOT": str(lab)},
    )  # fmt: skip
    found: list[dict[str, Any]] = []
    until = time.monotonic() + 60
    while not any(row["step"] == "long" and row["i"] >= 3 for row in found) and time.monotonic() < until:
        time.sleep(0.1)
        found = [row for path in tmp_path.glob("*/receipts.jsonl") for row in rows(path.parent)]
    kernel = psutil.Process(next(row["kernel_pid"] for row in found if row["step"] == "quick"))
    runner.send_signal(getattr(signal, signame))
    kernel.wait(5)
    out, _ = runner.communicate(timeout=30)
    answer = json.loads(out.splitlines()[-1])
    assert runner.returncode == case["right"]["exit_code_hint"][signame]
    held(case["right"], runner.returncode, answer)
    steps = [row["i"] for row in rows(Path(answer["run_dir"])) if row["step"] == "long"]
    assert steps == list(range(len(steps)))
    assert text_of(cell_of(stored(answer), "long")) == "".join(f"step {i}\n" for i in steps)
