"""A server of a few lines for the supervisor's tests: `fake_server.py PORT MODE`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT, MODE = int(sys.argv[1]), sys.argv[2]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def say(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.say(200, {"data": [{"id": "fake", "owned_by": "fake", "max_model_len": 99}]})
        elif self.path == "/version":
            self.say(200, {"version": "9"})
        elif self.path == "/environment":
            self.say(200, dict(os.environ))
        else:
            self.say(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if MODE == "dies-on-request":
            print("RuntimeError: the kernel is not there", flush=True)
            os._exit(3)
        if MODE == "sick":
            self.say(500, {"error": {"message": "the engine is dead"}})
        else:
            self.say(200, {"choices": [{"text": "x"}], "usage": {"completion_tokens": 1}})


if MODE == "crash":
    print("ValueError: no such flag", file=sys.stderr)
    print("RuntimeError: Engine core initialization failed. See root cause above.", file=sys.stderr)
    sys.exit(7)
if MODE == "hang":
    print("loading", flush=True)
    time.sleep(600)
if MODE == "stubborn":  # does not listen to SIGTERM and has a child in a session of its own
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
