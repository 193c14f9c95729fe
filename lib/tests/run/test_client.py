"""What a running cell writes to stderr is its progress: relayed by the line, bounded, printable."""

from __future__ import annotations

from lanelab.run import client as room
from lanelab.run.client import Client


def test_progress_is_relayed_once_a_second_and_cannot_drive_the_terminal(monkeypatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: clock[0])
    said: list[str] = []
    client = Client.__new__(Client)
    client._relay, client._relayed_at = said.append, 0.0
    client._tell("stdout", "a table\n")
    client._tell("stderr", "decode 1/9: size 256\n")
    client._tell("stderr", "decode 2/9: size 1K\n")
    clock[0] += 1.0
    client._tell("stderr", "old\n\x1b[2Jdecode 3/9\x07\n\n")
    clock[0] += 1.0
    client._tell("stderr", "x" * 10_000)
    assert said == ["decode 1/9: size 256", "[2Jdecode 3/9", "x" * 160]
