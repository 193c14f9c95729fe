"""What several rooms' tests share: one embedded server for the whole session."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest


@pytest.fixture(scope="session")
def mini_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL (with /v1) of an embedded server that all tests share."""
    pytest.importorskip("torch", reason="the embedded lane needs the extra `mini`")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log: Path = tmp_path_factory.mktemp("mini") / "log.txt"
    with open(log, "wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "lanelab.mini", "serve", "--port", str(port), "--max-model-len", "2048"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health", timeout=2, trust_env=False).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
