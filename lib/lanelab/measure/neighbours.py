"""How busy the rest of the machine was while a lane on it was measured.

A lane that runs beside its client shares the processor with whatever else runs there. The counters
of the server cannot see that; the kernel's accounting can: busy time of all cores, less that of the
server's process tree and of this process, over the wall time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class Reading:
    """CPU seconds since boot: of all cores, and of the lane's and the client's own processes."""

    at: float
    busy_s: float
    own_s: float


def server_pid(url: str) -> int | None:
    """The process that listens at a URL of this machine; None for other machines or if it may not be seen."""
    parts = urlsplit(url)
    if parts.hostname not in _LOCAL or parts.port is None:
        return None
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status != psutil.CONN_LISTEN or not connection.laddr or not connection.pid:
                continue
            if connection.laddr.port == parts.port:
                return int(connection.pid)
    except (psutil.Error, OSError):
        pass
    return None


def read(server: int) -> Reading | None:
    """The accounts now; None once the server is gone."""
    try:
        tree = [psutil.Process(server), *psutil.Process(server).children(recursive=True), psutil.Process()]
        own = 0.0
        for process in tree:
            times = process.cpu_times()
            own += times.user + times.system
    except psutil.Error:
        return None
    whole = psutil.cpu_times()
    return Reading(time.monotonic(), sum(whole) - whole.idle - getattr(whole, "iowait", 0.0), own)


def busy_cores(before: Reading | None, after: Reading | None) -> float | None:
    """Cores that others kept busy in between, on average; None where it cannot be known."""
    if before is None or after is None or after.at - before.at < 0.05:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return round(max(others_s / (after.at - before.at), 0.0), 2)
