"""The life of a lane: it outlives its caller, ends with all its processes, and is never restarted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from lanelab import lane as lanes
from lanelab.cli.main import main
from lanelab.lane import control
from lanelab.lane.launch import Launch
from lanelab.lane.model import Lane
from lanelab.lane.state import Identity, processes_of, read_state, state_path, write_state

FAKE = Path(__file__).with_name("fake_server.py")
MINI = "name: {name}\nkind: mini\nsays: a fake\nrecipe: {{name: fake, engine: lanelab-mini, version: '1'}}\n"


def fake_launch(mode: str) -> Callable[[Lane, int], Launch]:
    return lambda lane, port: Launch([sys.executable, str(FAKE), str(port), mode], dict(os.environ), FAKE.parent)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lab with a lane `fake`, whose server is the one of a few lines."""
    (tmp_path / "data" / "campaigns").mkdir(parents=True)
    (tmp_path / "data" / "lanes").mkdir()
    (tmp_path / "data" / "lanes" / "fake.yaml").write_text(MINI.format(name="fake"))
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path))
    monkeypatch.setattr(control, "launch_of", fake_launch("ok"))
    yield tmp_path
    state = read_state("fake") if state_path("fake").exists() else None
    lanes.down("fake")
    assert state is None or processes_of(state.token) == []


def wait_for(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def pids() -> tuple[int, int]:
    state = read_state("fake")
    assert state is not None and state.server is not None
    return state.supervisor.pid, state.server.pid


def test_up_resolve_check_down(lab: Path) -> None:
    endpoint = lanes.up("fake", timeout_s=30)
    assert endpoint.started_here and endpoint.boot_s is not None
    assert (endpoint.model, endpoint.lane_name) == ("fake", "fake")
    assert endpoint.server == {"engine": "fake", "max_model_len": 99, "version": "9", "arguments": []}
    assert endpoint.base_url.endswith("/v1") and endpoint.recipe == lanes.load("fake").recipe_ref()
    found = lanes.check(lanes.resolve("fake"))
    assert found.ok and found.works["health"] and not found.works["metrics"]
    [status] = lanes.list_lanes()
    assert (status.phase, status.pid) == ("up", pids()[1])
    memory = state_path("fake").parent.glob("*.memory.jsonl")
    assert "rss_bytes" in next(memory).read_text()
    assert lanes.down("fake")
    assert not lanes.down("fake")
    with pytest.raises(lanes.LaneDown, match="lanelab lane up fake"):
        lanes.resolve("fake")


def test_the_server_is_detached_and_carries_no_marks_of_a_run(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("LANELAB_ROOT", str(lab))
    monkeypatch.setenv("LANELAB_RUN", "some-run")
    from lanelab.lane.launch import launch_of

    real = launch_of(lanes.load("fake"), 1)
    assert "LANELAB_RUN" not in real.environment and real.argv[1:4] == ["-m", "lanelab.mini", "serve"]
    monkeypatch.setattr(
        control,
        "launch_of",
        lambda lane, port: Launch([sys.executable, str(FAKE), str(port), "ok"], real.environment, lab),
    )
    endpoint = lanes.up("fake", timeout_s=30)
    told = httpx.get(f"{endpoint.root_url}/environment", trust_env=False).json()
    assert told["LANELAB_DETACHED"] == "1" and "LANELAB_RUN" not in told
    watcher, server = pids()
    mine = os.getsid(0)
    assert len({mine, os.getsid(watcher), os.getsid(server)}) == 3
    assert psutil.Process(watcher).environ()["LANELAB_DETACHED"] == "1"


def test_a_lane_that_is_up_is_never_restarted(lab: Path) -> None:
    first = lanes.up("fake", timeout_s=30)
    before = pids()
    again = lanes.up("fake")
    assert (again.base_url, again.started_here, pids()) == (first.base_url, False, before)
    with lanes.ephemeral("fake") as borrowed:
        assert not borrowed.started_here
    assert pids() == before and lanes.resolve("fake").base_url == first.base_url
    with pytest.raises(lanes.LaneIsUp, match="never restarted"):
        lanes.up("fake", port=1)
    file = lab / "data" / "lanes" / "fake.yaml"
    file.write_text(file.read_text().replace("'1'", "'2'"))
    with pytest.raises(lanes.LaneIsUp, match="another recipe"):
        lanes.up("fake")
    assert pids() == before


def test_an_ephemeral_lane_ends_with_its_block(lab: Path) -> None:
    with pytest.raises(ZeroDivisionError), lanes.ephemeral("fake", timeout_s=30) as endpoint:
        assert endpoint.started_here
        server = pids()[1]
        raise ZeroDivisionError
    assert not psutil.pid_exists(server)


CALLER = """
import os, sys, time
sys.path.insert(0, {tests!r})
from test_supervisor import fake_launch
from lanelab import lane as lanes
from lanelab.lane import control
control.launch_of = fake_launch("ok")
lanes.up("fake", timeout_s=30, owner_pid={owner})
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("ephemeral", [True, False])
def test_sigkill_of_the_caller(lab: Path, ephemeral: bool) -> None:
    """An ephemeral lane goes down with its caller; any other one does not notice."""
    code = CALLER.format(tests=str(FAKE.parent), owner="os.getpid()" if ephemeral else None)
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    assert caller.stdout.readline() == "up\n"
    server = pids()[1]
    caller.kill()  # and not reaped yet: a zombie is dead too
    if ephemeral:
        wait_for(lambda: not psutil.pid_exists(server))
        wait_for(lambda: (read_state("fake") or pytest.fail("no state")).phase == "stopped")
        assert "owner" in str((read_state("fake") or pytest.fail("no state")).cause)
    else:
        time.sleep(0.8)
        assert lanes.resolve("fake").model == "fake"
    caller.wait()
    caller.stdout.close()


def test_sigkill_of_the_supervisor_leaves_no_server(lab: Path) -> None:
    lanes.up("fake", timeout_s=30)
    watcher, server = pids()
    os.kill(watcher, signal.SIGKILL)
    if sys.platform == "linux":
        wait_for(lambda: not psutil.pid_exists(server))
    [status] = lanes.list_lanes()
    assert status.phase == "died" and status.problem == "its supervisor was killed"
    with pytest.raises(lanes.LaneDied, match="supervisor was killed"):
        lanes.resolve("fake")
    assert lanes.up("fake", timeout_s=30).started_here


def test_a_server_that_dies_is_reported_and_not_restarted(lab: Path) -> None:
    lanes.up("fake", timeout_s=30)
    os.kill(pids()[1], signal.SIGKILL)
    wait_for(lambda: (read_state("fake") or pytest.fail("no state")).phase == "died")
    with pytest.raises(lanes.LaneDied, match=r"exit code -9.*lanelab lane up fake"):
        lanes.resolve("fake")
    assert lanes.list_lanes()[0].phase == "died"


@pytest.mark.parametrize(
    ("mode", "cause", "code"),
    [
        ("crash", "ValueError: no such flag", 7),
        ("dies-on-request", "RuntimeError: the kernel is not there", 3),
        ("sick", "does not generate: .*the engine is dead", None),
        ("hang", "not ready after 1.5 s; its last line: loading", None),
    ],
)
def test_failed_starts_say_why_in_one_line(
    lab: Path, monkeypatch: pytest.MonkeyPatch, mode: str, cause: str, code: int | None
) -> None:
    monkeypatch.setattr(control, "launch_of", fake_launch(mode))
    with pytest.raises(lanes.LaneFailed, match=cause) as caught:
        lanes.up("fake", timeout_s=1.5 if mode == "hang" else 30)
    assert "\n" not in str(caught.value) and caught.value.data["exit_code_of_server"] == code
    log = lab / str(caught.value.data["log"])
    assert log.is_file() and str(lab) not in str(caught.value)
    if mode == "crash":
        with pytest.raises(lanes.LaneFailed, match="2 failures in a row"):
            lanes.up("fake", timeout_s=30)


def test_a_server_that_ignores_sigterm_and_hides_a_child(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "launch_of", fake_launch("stubborn"))
    monkeypatch.setattr(control, "GRACE_S", 0.5)
    lanes.up("fake", timeout_s=30)
    state = read_state("fake")
    assert state is not None
    assert len(processes_of(state.token)) == 3  # supervisor, server, child
    assert lanes.down("fake")
    assert processes_of(state.token) == []


def test_a_stale_state_file_does_not_fool_anyone(lab: Path) -> None:
    """The pid is in use again, by a process that began at another time: it is neither trusted nor killed."""
    endpoint = lanes.up("fake", timeout_s=30)
    lanes.down("fake")
    state = read_state("fake")
    assert state is not None
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        past = Identity(pid=bystander.pid, started=time.time() - 5000)
        write_state(state.model_copy(update={"phase": "ready", "supervisor": past, "server": past}))
        with pytest.raises(lanes.LaneDied):
            lanes.resolve("fake")
        assert lanes.down("fake") is False
        assert bystander.poll() is None
        assert lanes.up("fake", timeout_s=30).base_url != "" and endpoint.base_url != ""
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_taken_port_names_its_holder(lab: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(lanes.PortInUse, match=rf"port {port} is held by process {os.getpid()} ") as caught:
            lanes.up("fake", port=port)
    assert caught.value.data["pid"] == os.getpid()
    assert read_state("fake") is None


def test_two_callers_start_one_server(lab: Path) -> None:
    code = CALLER.format(tests=str(FAKE.parent), owner=None).replace("time.sleep(600)", "")
    callers = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [caller.communicate(timeout=60)[0] for caller in callers] == ["up\n", "up\n"]
    assert len(list(state_path("fake").parent.glob("fake-*.log"))) == 1


def test_down_all_takes_down_what_was_brought_up_here(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "data" / "lanes" / "theirs.yaml").write_text(
        "name: theirs\nkind: attach\nurl: http://127.0.0.1:1\nsays: s\n"
    )
    assert main(["lane", "down", "--all"]) == 0 and "no lane was up" in capsys.readouterr().out
    lanes.up("fake", timeout_s=30)
    assert main(["lane", "down", "--all", "--json"]) == 0
    assert capsys.readouterr().out == '{"down": ["fake"]}\n'
    assert lanes.list_lanes()[0].phase == "down"
    assert main(["lane", "down", "--all"]) == 0


def test_progress_tells_a_log_line_once(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "launch_of", fake_launch("hang"))
    monkeypatch.setattr(control, "TELL_S", 0.1)
    monkeypatch.setattr(control, "TELL_AGAIN_S", 0.7)
    told: list[str] = []
    with pytest.raises(lanes.LaneFailed):
        lanes.up("fake", timeout_s=3, progress=told.append)
    assert sum("loading" in line for line in told) == 1
    assert 2 <= len(told) <= 7 and all(line.startswith("lane fake: starting, ") for line in told)
