"""Every way in which a run can end, each by its own notebook."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from .conftest import Call, cell_of, fixture, record_of, stored, text_of

NEVER = {"status": "pending", "exception": None}


def marks(cell: Any) -> dict[str, Any]:
    found = cell.metadata.papermill
    return {"status": found["status"], "exception": found["exception"]}


def test_ok_with_typed_parameters(call: Call, tmp_path: Path) -> None:
    code, answer, err = call(
        "run", fixture("ok"), "--run-dir", tmp_path / "in {braces}", "-p", "word=off", "-p", "times=1e1",
        "-p", "ratio=2", "-p", "flag=true", "-p", "sizes=[3]", "-p", "extra=null",
    )  # fmt: skip
    assert (code, answer["status"], answer["reason"]) == (0, "ok", None)
    assert answer["cells"] == {"executed": ["params", "show", "environment"], "stopped_in": None, "not_executed": []}
    folder = Path(answer["run_dir"])
    assert folder.parent == tmp_path / "in {braces}"
    assert json.loads((folder / "said.json").read_text()) == ["off", 10, 2.0, True, [3], None]
    record = record_of(answer)
    assert record["parameters"]["times"] == {"type": "int", "value": 10, "passed": True}
    assert record["parameters"]["ratio"]["type"] == "float"
    for name, digest in record["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert {"notebook.ipynb", "notebook.html", "log.txt", "said.json"} == set(record["files"])
    for name in ("notebook.ipynb", "notebook.html", "log.txt", "run.json"):
        assert not (folder / name).stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    environment = text_of(cell_of(stored(answer), "environment"))
    for name, value in {"RUN": record["id"], "RUN_DIR": str(folder), "STEP": "ok", "CAMPAIGN": "here"}.items():
        assert f"'LANELAB_{name}': '{value}'" in environment
    assert re.findall(r"^\[(\d)/3\] (\S+):", err, re.M) == [("1", "params"), ("2", "show"), ("3", "environment")]
    page = (folder / "notebook.html").read_text()
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", page), "the view must need no network"


def test_runs_get_folders_of_their_own(call: Call, tmp_path: Path) -> None:
    folders = [call("run", fixture("raises-as-expected"), "--run-dir", tmp_path)[1]["run_dir"] for _ in range(2)]
    assert len(set(folders)) == 2 and all(Path(folder).parent == tmp_path for folder in folders)


def test_an_error_keeps_what_was_printed(call: Call, tmp_path: Path) -> None:
    code, answer, err = call("run", fixture("raises"), "--run-dir", tmp_path)
    assert (code, answer["status"], answer["cause"]) == (1, "failed", "error")
    assert "ValueError: no such size: 16384" in answer["reason"] and "'boom'" in answer["reason"]
    assert answer["cells"] == {"executed": ["first"], "stopped_in": "boom", "not_executed": ["after"]}
    notebook = stored(answer)
    assert text_of(cell_of(notebook, "first")) == "kept text\n"
    assert marks(cell_of(notebook, "boom")) == {"status": "failed", "exception": True}
    assert marks(cell_of(notebook, "md-after")) == NEVER and marks(cell_of(notebook, "after")) == NEVER
    assert notebook.metadata.lanelab.run.status == "failed" and len(notebook.cells) == 4
    assert "failed: ValueError" in err
    assert "failed" in (Path(answer["run_dir"]) / "notebook.html").read_text()


@pytest.mark.parametrize(("name", "how"), [("leaves-by-sys-exit", "SystemExit(0)"), ("leaves-by-exit", "exit()")])
def test_leaving_early_is_no_success(call: Call, tmp_path: Path, name: str, how: str) -> None:
    code, answer, _ = call("run", fixture(name), "--run-dir", tmp_path)
    assert (code, answer["status"], answer["cause"]) == (1, "failed", "exited_early")
    assert how in answer["reason"] and "'leave'" in answer["reason"] and "1 cell did not run" in answer["reason"]
    assert answer["cells"] == {"executed": ["first"], "stopped_in": "leave", "not_executed": ["verdict"]}


def test_a_dead_kernel_is_seen_at_once(call: Call, tmp_path: Path) -> None:
    began = time.monotonic()
    code, answer, _ = call("run", fixture("kills-its-kernel"), "--run-dir", tmp_path)
    assert time.monotonic() - began < 20
    assert (code, answer["status"], answer["cause"]) == (1, "died", "kernel_died")
    assert "SIGKILL" in answer["reason"] and "'kill'" in answer["reason"] and "no Python error" in answer["reason"]
    notebook = stored(answer)
    assert "last words" in text_of(cell_of(notebook, "kill"))
    assert marks(cell_of(notebook, "kill"))["status"] == "failed" and marks(cell_of(notebook, "after")) == NEVER


def test_a_cell_that_is_too_slow(call: Call, tmp_path: Path) -> None:
    code, answer, _ = call("run", fixture("sleeps"), "--run-dir", tmp_path, "--cell-timeout-s", "1.5")
    assert (code, answer["status"], answer["cause"]) == (1, "timeout", "cell_timeout")
    assert answer["reason"] == "cell 'sleep' passed its limit of 1.5 s"
    assert answer["cells"] == {"executed": ["params", "first"], "stopped_in": "sleep", "not_executed": ["after"]}
    sleep = cell_of(stored(answer), "sleep")
    assert "asleep" in text_of(sleep)
    error = next(output for output in sleep.outputs if output.output_type == "error")
    assert error.ename == "TimedOut" and "KeyboardInterrupt" not in json.dumps(error)


def test_a_run_over_budget_whose_cell_ignores_interrupts(call: Call, tmp_path: Path) -> None:
    code, answer, _ = call("run", fixture("ignores-interrupts"), "--run-dir", tmp_path, "--timeout-s", "4")
    assert (code, answer["status"], answer["cause"]) == (1, "timeout", "run_timeout")
    assert answer["cells"]["stopped_in"] in ("deaf", "first", None) and answer["seconds"] < 15
    deaf = cell_of(stored(answer), "deaf")
    assert deaf.execution_count is None or "TimedOut" in [output.get("ename") for output in deaf.outputs]


def test_a_kernel_that_starts_too_slowly(call: Call, tmp_path: Path) -> None:
    code, answer, _ = call("run", fixture("ok"), "--run-dir", tmp_path, "--start-timeout-s", "0.05")
    assert (code, answer["status"], answer["cause"]) == (1, "timeout", "start_timeout")
    assert answer["cells"] == {"executed": [], "stopped_in": None, "not_executed": ["params", "show", "environment"]}


def test_orphans_are_ended_and_a_detached_lane_is_not(call: Call, tmp_path: Path) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        code, answer, _ = call("run", fixture("leaves-children"), "--run-dir", tmp_path)
        pids = json.loads((Path(answer["run_dir"]) / "pids.json").read_text())
        lane = psutil.Process(pids["lane"])
        try:
            assert (code, answer["status"]) == (0, "ok")
            assert lane.status() != psutil.STATUS_ZOMBIE and bystander.poll() is None
            ended = {item["pid"]: item["by"] for item in record_of(answer)["ended_processes"]}
            assert not psutil.pid_exists(pids["bare"]) and not psutil.pid_exists(pids["deaf"])
            assert ended[pids["deaf"]] == "SIGKILL" and pids["lane"] not in ended
            assert len(ended) == 3, "the child that forked away is found by its mark"
            assert all(not psutil.pid_exists(pid) for pid in ended)
            assert "3 processes" in answer["warnings"][0]
        finally:
            lane.kill()
            lane.wait(5)
    finally:
        bystander.kill()
        bystander.wait()


def test_a_flood_is_joined_and_cut_aloud(call: Call, tmp_path: Path) -> None:
    code, answer, _ = call("run", fixture("floods"), "--run-dir", tmp_path)
    assert (code, answer["status"]) == (0, "ok")
    notebook = stored(answer)
    flood = cell_of(notebook, "flood")
    text = text_of(flood)
    assert len(flood.outputs) == 1 and text.startswith("[000000] ") and "[039999] " in text
    said = int(re.search(r"(\d+) bytes cut here", text).group(1))  # type: ignore[union-attr]
    marker = f"\n[… {said} bytes cut here by the runner …]\n"
    assert len(text.replace(marker, "").encode()) + said == 40000 * 100, "every byte is kept or counted"
    assert f"{said} bytes" in answer["warnings"][0]
    mixed = cell_of(notebook, "mixed")
    assert sorted(output.name for output in mixed.outputs) == ["stderr", "stdout"]
    assert next(o.text for o in mixed.outputs if o.name == "stdout") == "".join(f"out {i}\n" for i in range(500))
    assert text_of(cell_of(notebook, "bar")) == "step 299"
    assert Path(answer["notebook"]).stat().st_size < 2_000_000


def test_expected_exceptions_are_fine(call: Call, tmp_path: Path) -> None:
    code, answer, _ = call("run", fixture("raises-as-expected"), "--run-dir", tmp_path)
    assert (code, answer["status"], answer["cells"]["executed"]) == (0, "ok", ["bad", "after"])


def test_widget_metadata_without_state(call: Call, tmp_path: Path) -> None:
    _, answer, _ = call("run", fixture("widget-without-state"), "--run-dir", tmp_path)
    assert answer["status"] == "ok" and answer["warnings"] == []
    assert (Path(answer["run_dir"]) / "notebook.html").is_file()


def test_secrets_and_home_paths_are_not_stored(call: Call, tmp_path: Path) -> None:
    _, answer, _ = call("run", fixture("prints-secrets"), "--run-dir", tmp_path)
    text = Path(answer["notebook"]).read_text() + (Path(answer["run_dir"]) / "notebook.html").read_text()
    assert (
        "a1b2c3d4e5f6g7h8" not in json.loads(Path(answer["notebook"]).read_text())["cells"][0]["outputs"][0]["text"][0]
    )
    assert "sk-a1b2c3d4e5f6g7h8" not in text and str(Path.home() / "work") not in text


def start(lab: Path, notebook: str, run_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from lanelab.cli.main import entry; entry()", "run", str(fixture(notebook)), "--run-dir",
         str(run_dir), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "LANELAB_ROOT": str(lab)},
    )  # fmt: skip


def wait_for(pattern: str, folder: Path, seconds: float = 60) -> Path:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := list(folder.glob(pattern)):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"no {pattern} in {folder}")


@pytest.mark.parametrize(
    ("signum", "code", "notebook", "again"),
    [(signal.SIGTERM, 143, "sleeps", False), (signal.SIGINT, 130, "ignores-interrupts", True)],
)
def test_told_to_stop(lab: Path, tmp_path: Path, signum: int, code: int, notebook: str, again: bool) -> None:
    runner = start(lab, notebook, tmp_path / "runs")
    wait_for("*/asleep", tmp_path / "runs")
    kernels = psutil.Process(runner.pid).children(recursive=True)
    runner.send_signal(signum)
    if again:
        time.sleep(0.3)
        runner.send_signal(signum)
    gone, alive = psutil.wait_procs(kernels, timeout=5)
    assert gone and not alive, "the kernel must be gone within five seconds"
    out, err = runner.communicate(timeout=30)
    answer = json.loads(out.splitlines()[-1])
    assert (runner.returncode, answer["status"]) == (code, "interrupted")
    assert "Traceback" not in err
    record = record_of(answer)
    assert record["status"] == "interrupted" and record["finished"] and record["runner"] is None
    assert answer["cells"]["not_executed"] == ["after"]
    stopped = cell_of(stored(answer), answer["cells"]["stopped_in"])
    assert text_of(stopped).split()[0] in ("asleep", "deaf")
    assert "Interrupted" in [output.get("ename") for output in stopped.outputs]


def test_a_killed_runner_reads_died(lab: Path, tmp_path: Path) -> None:
    from lanelab.run import record

    runner = start(lab, "sleeps", tmp_path / "runs")
    folder = wait_for("*/asleep", tmp_path / "runs").parent
    kernels = psutil.Process(runner.pid).children(recursive=True)
    assert record.read(folder).status == "running"
    runner.kill()
    runner.wait()
    try:
        assert json.loads((folder / "run.json").read_text())["status"] == "running"
        run = record.read(folder)
        assert (run.status, run.cause) == ("died", "runner_killed")
    finally:
        psutil.wait_procs(kernels, timeout=10)
        for kernel in kernels:
            if kernel.is_running():
                kernel.kill()
