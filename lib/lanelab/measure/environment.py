"""The client's side of a receipt's environment, and where the source stands."""

from __future__ import annotations

import asyncio
import os
import platform
from importlib import metadata
from typing import Any

import psutil

from lanelab.machine_here import cores, cpu_model

_REPORTED = ("lanelab", "httpx", "httpcore", "h11", "anyio", "pydantic")


def client_facts() -> dict[str, Any]:
    """What measured: versions, processor, event loop, and how busy the machine was before. No names."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": cores(),
        "event_loop": _event_loop(),
        "clock": "time.perf_counter",
    }
    for name in _REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if hasattr(os, "getloadavg"):
        found["load_1m_before"] = round(os.getloadavg()[0], 2)
    found["memory_available_gib_before"] = round(psutil.virtual_memory().available / 2**30, 2)
    return found


def _event_loop() -> str:
    loop = asyncio.new_event_loop()
    try:
        kind = type(loop)
        return f"{kind.__module__}.{kind.__qualname__}"
    finally:
        loop.close()
