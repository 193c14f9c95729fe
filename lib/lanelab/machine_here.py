"""What this machine is: read from the system, and its memory's speed measured.

Nothing that names the machine (host name, serial numbers) is read.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import yaml

from lanelab.machine import HERE, Cpu, Figure, Gpu, Machine, machine_path
from lanelab.receipts.files import write_atomic

GIB = 2**30
_COPY_BYTES = 256 * 2**20  # far beyond any cache
_QUERY = "name,uuid,driver_version,memory.total,power.limit"


def cpu_model() -> str:
    """The processor's name as the kernel gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def host_memory_bytes() -> int:
    """Physical memory, or the control group's limit where that is lower."""
    total: int = psutil.virtual_memory().total
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text().strip())
    except (OSError, ValueError):
        return total
    return min(total, limit)


def copy_gib_s(repeats: int = 5, size_bytes: int = _COPY_BYTES) -> float:
    """Best of `repeats` copies of one array into another by one thread, bytes read plus bytes written.

    One thread does not saturate a server's memory; the figure is what a single-threaded reader gets.
    """
    source = np.ones(size_bytes // 8)
    target = np.zeros_like(source)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best / GIB


def gpus() -> list[Gpu]:
    """The GPUs that nvidia-smi lists; none without it."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    try:
        done = subprocess.run(
            [tool, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_gpus(done.stdout) if done.returncode == 0 else []


def parse_gpus(text: str) -> list[Gpu]:
    """Rows of `nvidia-smi --query-gpu` as GPUs; rows without a memory size are left out."""
    found = []
    for row in csv.reader(io.StringIO(text), skipinitialspace=True):
        if len(row) != len(_QUERY.split(",")):
            continue
        name, uuid, driver, memory_mib, power_w = (item.strip() for item in row)
        memory, power = _number(memory_mib), _number(power_w)
        if not memory:
            continue
        hbm = Figure(value=memory / 1024, origin="measured", source="nvidia-smi memory.total")
        found.append(Gpu(name=name, hbm_gib=hbm, uuid=uuid, driver=driver, power_limit_w=power))
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def measure() -> Machine:
    """This machine as it stands."""
    memory = Figure(
        value=round(host_memory_bytes() / GIB, 3),
        origin="measured",
        source="kernel's total, or the control group's limit",
    )
    speed = Figure(
        value=round(copy_gib_s(), 2), origin="measured",
        source="numpy copy of 256 MiB, one thread, best of five; bytes read plus written",
    )  # fmt: skip
    cpu = Cpu(model=cpu_model(), arch=platform.machine(), cores=cores())
    title = f"This machine: {cpu.model}, {cpu.cores} cores, {memory.value:.0f} GiB"
    return Machine(name=HERE, title=title, cpu=cpu, host_gib=memory, host_gib_s=speed, gpus=gpus())


def write(machine: Machine) -> Path:
    """Write a machine's YAML (git ignores `here.yaml`). Raises `NoSpace`."""
    path = machine_path(machine.name)
    text = yaml.safe_dump(machine.model_dump(exclude_none=True), sort_keys=False, allow_unicode=True, width=110)
    write_atomic(path, text.encode())
    return path
