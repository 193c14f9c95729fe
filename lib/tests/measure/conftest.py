"""A small server with vLLM's routes, whose send times, counters and failures the test decides."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


class FakeLane:
    """What the server does, and what it saw."""

    def __init__(self) -> None:
        self.first_s = 0.02
        self.token_s = 0.004
        self.die_after: int | None = None  # completions; then the server vanishes
        self.refuse_fields: set[str] = set()
        self.garbage: list[str] = []  # data of the stream instead of tokens, once warm
        self.tokenize = True
        self.metrics = True
        self.strangers = 0  # running requests of others
        self.finished = 0.0
        self.queries = 0.0
        self.hits = 0.0
        self.max_model_len: int | None = 4096
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        self.url = ""
        self.server: ThreadingHTTPServer | None = None

    def tokens(self, text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text)) + 1

    def page(self) -> str:
        values = {"num_requests_running": self.strangers, "num_requests_waiting": 0, "request_success_total": self.finished,
                  "prefix_cache_queries_total": self.queries, "prefix_cache_hits_total": self.hits}  # fmt: skip
        return "".join(
            f"# TYPE vllm:{name} {'counter' if name.endswith('_total') else 'gauge'}\nvllm:{name} {value}\n"
            for name, value in values.items()
        )


def handler(lane: FakeLane) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def plain(self, value: Any, status: int = 200) -> None:
            body = (value if isinstance(value, str) else json.dumps(value)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self.plain({"data": [{"id": "fake", "owned_by": "fake", "max_model_len": lane.max_model_len}]})
            elif self.path == "/version":
                self.plain({"version": "1.2.3"})
            elif self.path == "/metrics" and lane.metrics:
                self.plain(lane.page())
            else:
                self.plain({"error": "no such route"}, 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/tokenize" and lane.tokenize:
                self.plain({"count": lane.tokens(body["prompt"]), "tokens": []})
            elif self.path == "/v1/completions":
                self.complete(body)
            else:
                self.plain({"error": "no such route"}, 404)

        def complete(self, body: dict[str, Any]) -> None:
            if lane.refuse_fields & set(body):
                return self.plain({"error": {"message": "unknown field"}}, 400)
            with lane.lock:
                lane.requests.append(body)
                if lane.die_after is not None and len(lane.requests) > lane.die_after:
                    assert lane.server is not None
                    threading.Thread(target=lane.server.shutdown).start()
                    lane.server.socket.close()
                    self.close_connection = True
                    return None
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            if lane.garbage and len(lane.requests) > 1:
                self.wfile.write("".join(f"data: {data}\n\n" for data in lane.garbage).encode())
                return None
            prompt = lane.tokens(body["prompt"])
            for number in range(body["max_tokens"]):
                time.sleep(lane.token_s if number else lane.first_s)
                last = number == body["max_tokens"] - 1
                choice: dict[str, Any] = {"index": 0, "text": f" {number}", "finish_reason": "length" if last else None}
                if body.get("return_token_ids"):
                    choice["token_ids"] = [number]
                self.event({"choices": [choice]})
            with lane.lock:
                lane.finished += 1
                lane.queries += prompt
            self.event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": body["max_tokens"]}})
            self.wfile.write(b"data: [DONE]\n\n")
            return None

        def event(self, value: dict[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
            self.wfile.flush()

    return Handler


@pytest.fixture
def fake() -> Iterator[FakeLane]:
    lane = FakeLane()
    lane.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(lane))
    lane.server.daemon_threads = True
    lane.url = f"http://127.0.0.1:{lane.server.server_port}/v1"
    threading.Thread(target=lane.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield lane
    lane.server.shutdown()
    lane.server.server_close()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty lab; returns the folder of its campaign `here`."""
    monkeypatch.setattr("lanelab.measure.bench.COUNTED_S", 0.1)
    (tmp_path / "data" / "campaigns").mkdir(parents=True)
    (tmp_path / "data" / "lanes").mkdir()
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path))
    return tmp_path / "data" / "campaigns" / "here"
