"""Lane files, URLs and what an endpoint says of itself; every mistake is one line that names it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lanelab import lane as lanes
from lanelab.cli.main import main
from lanelab.errors import BadFile, LabError
from lanelab.lane import logs
from lanelab.lane.model import base_url, key_headers


class Hostile(BaseHTTPRequestHandler):
    """Answers what the test puts into `pages`; keeps the headers that came."""

    pages: dict[str, tuple[int, bytes]] = {}
    seen: list[dict[str, str]] = []

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.seen.append(dict(self.headers))
        status, body = self.pages.get(self.path, (404, b"{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()


@pytest.fixture
def server() -> Iterator[str]:
    Hostile.pages, Hostile.seen = {}, []
    made = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    made.server_close()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "campaigns").mkdir(parents=True)
    (tmp_path / "data" / "lanes").mkdir()
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path))
    return tmp_path


def write(lab: Path, name: str, text: str) -> None:
    (lab / "data" / "lanes" / f"{name}.yaml").write_text(text)


def models(*names: str, **more: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"data": [{"id": name, **more} for name in names]}).encode()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        ("https://host/v1/", "https://host/v1"),
        ("https://host/some/path", "https://host/some/path/v1"),
    ],
)
def test_urls_end_in_v1(given: str, url: str) -> None:
    assert base_url(given) == url == base_url(url)


@pytest.mark.parametrize(
    "given", ["ftp://host", "http://", "http://host:99999", "http://host:x", "http://a:b@host", "http://host/?k=1"]
)
def test_what_is_no_url_of_a_server(given: str) -> None:
    with pytest.raises(lanes.BadUrl):
        base_url(given)


def test_the_lanes_of_this_checkout_can_be_read() -> None:
    root = Path(__file__).parents[3]
    for path in (root / "data" / "lanes").glob("*.yaml"):
        lane = lanes.load(path.stem)
        assert lane.recipe is None or lane.recipe_ref() is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: bad\nkind: mini\nsays: x\n", "needs a recipe"),
        ("name: bad\nkind: attach\nsays: x\n", "needs a url"),
        ("name: bad\nkind: attach\nsays: x\nurl: host\n", "no URL of a server"),
        ("name: bad\nkind: warp\nsays: x\n", "bad.yaml:2 .*kind"),
        ("name: bad\nkind: attach\nsays: x\nurl: http://h\napikey: s\n", "bad.yaml:5 .*apikey"),
        ("name: other\nkind: attach\nsays: x\nurl: http://h\n", "must be the file's"),
        ("name: [bad\n", "is not YAML"),
    ],
)
def test_wrong_files_are_named_by_line_and_field(lab: Path, text: str, says: str) -> None:
    write(lab, "bad", text)
    with pytest.raises(BadFile, match=says):
        lanes.load("bad")
    [status] = lanes.list_lanes()
    assert status.phase == "unreadable" and status.problem


@pytest.mark.parametrize("name", ["minni", "../mini", "", ".state", "a/b"])
def test_unknown_lanes(lab: Path, name: str) -> None:
    write(lab, "mini", "name: mini\nkind: attach\nsays: x\nurl: http://h\n")
    with pytest.raises(lanes.UnknownLane, match="valid: mini"):
        lanes.load(name)


def test_attached_lanes_are_asked_and_left_alone(lab: Path, server: str) -> None:
    Hostile.pages = {
        "/v1/models": models("big", "small", owned_by="sglang", max_model_len=77),
        "/version": (200, b'{"version": "0.5"}'),
        "/v1/completions": (200, b'{"choices": [{"text": "x"}]}'),
    }
    write(lab, "there", f"name: there\nkind: attach\nsays: x\nurl: {server}\nmodel: small\nemulated: a link\n")
    endpoint = lanes.up("there")
    assert (endpoint.model, endpoint.emulated, endpoint.started_here) == ("small", "a link", False)
    assert endpoint.server == {"engine": "sglang", "max_model_len": 77, "version": "0.5"}
    assert lanes.list_lanes()[0].phase == "up"
    found = lanes.check(endpoint)
    assert found.ok and not found.works["tokenize"] and "404" in found.why["tokenize"]
    with pytest.raises(lanes.NotOurs, match="not taken down here"):
        lanes.down("there")


def test_a_server_without_completions_is_asked_to_chat(lab: Path, server: str) -> None:
    Hostile.pages = {"/v1/models": models("m"), "/v1/chat/completions": (200, b'{"choices": [{"message": {}}]}')}
    assert lanes.check(lanes.resolve(server)).works["generate"]


def test_keys_come_from_the_environment(lab: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Hostile.pages = {"/v1/models": models("m")}
    write(lab, "paid", f"name: paid\nkind: attach\nsays: x\nurl: {server}\napi_key_env: SOME_KEY\n")
    with pytest.raises(lanes.MissingKey, match="SOME_KEY"):
        lanes.resolve("paid")
    assert Hostile.seen == []
    monkeypatch.setenv("SOME_KEY", "s3cret")
    endpoint = lanes.resolve("paid")
    assert Hostile.seen[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(endpoint) and endpoint.headers() == {"Authorization": "Bearer s3cret"}
    Hostile.seen.clear()
    lanes.resolve(server)
    assert "Authorization" not in Hostile.seen[0]
    assert key_headers("x", None) == {}


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ((200, b"<html>"), "not a JSON object"),
        ((200, b"[1]"), "not a JSON object"),
        ((200, b'{"data": []}'), "names no model"),
        ((200, b'{"data": 7}'), "names no model"),
        ((200, b'{"data": [{"id": 3}, 4]}'), "names no model"),
        ((200, b"[" * 100_000), "not a JSON object"),
        ((200, b" " * 9_000_000), "bytes"),
        ((500, b'{"error": {"message": "broken"}}'), "HTTP 500: broken"),
        ((302, b""), "HTTP 302"),
    ],
)
def test_nonsense_counts_as_down(lab: Path, server: str, page: tuple[int, bytes], says: str) -> None:
    Hostile.pages = {"/v1/models": page}
    with pytest.raises(lanes.LaneDown, match=says) as caught:
        lanes.resolve(server)
    assert "\n" not in str(caught.value)


def test_a_damaged_state_file_is_named(lab: Path) -> None:
    write(lab, "m", "name: m\nkind: mini\nsays: x\nrecipe: {name: m, engine: lanelab-mini, version: '1'}\n")
    (lab / "data" / "lanes" / ".state").mkdir()
    (lab / "data" / "lanes" / ".state" / "m.json").write_text("{")
    with pytest.raises(BadFile, match=r"m\.json"):
        lanes.resolve("m")


def test_the_command_line_fails_in_one_line(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, says in (
        (["lane", "up", "nope"], "unknown lane 'nope'"),
        (["lane", "check", "http://127.0.0.1:9"], "Connection refused"),
        (["lane", "down", "http://127.0.0.1:9"], "not taken down here"),
        (["lane", "up", "nope", "--port", "x"], "--port"),
    ):
        assert main(arguments) in (1, 2)
        error = capsys.readouterr().err
        assert says in error and "Traceback" not in error and error.count("\n") == 1
    assert main(["lane", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"lanes": []}


def test_check_exits_1_if_nothing_is_generated(lab: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    Hostile.pages = {"/v1/models": models("m"), "/health": (200, b""), "/v1/completions": (500, b"{}")}
    assert main(["lane", "check", server, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["works"]["health"] and not found["works"]["generate"] and not found["ok"]


def test_the_cause_stands_before_the_last_exception(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "INFO 1\n(EngineCore pid=7) ERROR 11-29 16:18:15 [core.py:1] ValueError: too little room\n"
        "  in a frame\nRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )
    assert logs.cause(log) == "ValueError: too little room"
    log.write_text("vllm: error: unrecognized arguments: --x\n")
    assert logs.cause(log) == "vllm: error: unrecognized arguments: --x"
    assert logs.cause(tmp_path / "none") == "its log is empty"
    assert issubclass(lanes.LaneDown, LabError)
