"""`lanelab lane`: lanes up, down, listed and checked."""

from __future__ import annotations

import os
import time
from dataclasses import asdict

import click

from lanelab import lane as lanes
from lanelab.cli.numbers import Finite
from lanelab.cli.output import Answer, command, progress
from lanelab.errors import UsageError


@click.group("lane", short_help="Lanes: bring up, take down, list, check.")
def lane() -> None:
    """A lane is a served endpoint that notebooks measure. `up` hands it to a detached supervisor."""


@command("up", "lanelab lane up mini --port 8500")
@click.argument("name")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0 takes a free one.")
@click.option("--timeout-s", type=Finite(1, 86400), default=300.0, show_default=True)
@click.option("--ephemeral", is_flag=True, help="Goes down when the process that called lanelab ends.")
def up(name: str, port: int, timeout_s: float, ephemeral: bool) -> Answer:
    """Bring a lane up and return once it has generated; it stays up until `lane down`."""
    owner = os.getppid() if ephemeral else None
    endpoint = lanes.up(name, port, timeout_s, owner_pid=owner, progress=progress)
    data = {
        "lane": endpoint.lane_name,
        "url": endpoint.base_url,
        "model": endpoint.model,
        "server": endpoint.server,
        "started": endpoint.started_here,
        "boot_s": endpoint.boot_s,
    }
    how = f"up in {endpoint.boot_s:.1f} s" if endpoint.started_here and endpoint.boot_s else "was up already"
    return Answer(data, f"lane {endpoint.lane_name} {how}: {endpoint.base_url} serves {endpoint.model}")


@command("down", "lanelab lane down mini")
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Every lane that was brought up here.")
def down(name: str | None, every: bool) -> Answer:
    """Take a lane down that was brought up here."""
    if (name is None) != every:
        raise UsageError("say what to take down: either a lane's NAME or --all")
    if name is None:
        taken = lanes.down_all()
        return Answer({"down": taken}, "\n".join(f"lane {one} is down" for one in taken) or "no lane was up")
    was_up = lanes.down(name)
    return Answer({"lane": name, "was_up": was_up}, f"lane {name} {'is down' if was_up else 'was not up'}")


@command("list", "lanelab lane list")
def list_() -> Answer:
    """All lanes and how they stand."""
    found = lanes.list_lanes()
    lines = [f"{'lane':12} {'kind':9} {'state':10} where"]
    for one in found:
        where = one.url or ""
        if one.since and one.phase == "up":
            where += f" (pid {one.pid}, up {time.time() - one.since:.0f} s{', ephemeral' if one.ephemeral else ''})"
        if one.problem:
            repeated = f" [{one.failures_in_a_row} times in a row]" if one.failures_in_a_row > 1 else ""
            where += f" {one.problem}{repeated}"
        lines.append(f"{one.name:12} {one.kind:9} {one.phase:10} {where.strip() or one.says}")
    return Answer({"lanes": [asdict(one) for one in found]}, "\n".join(lines))


@command("check", "lanelab lane check mini")
@click.argument("name_or_url")
@click.option("--timeout-s", type=Finite(1, 3600), default=60.0, show_default=True)
def check(name_or_url: str, timeout_s: float) -> Answer:
    """Ask every route and generate once: what works, engine, version, model. Exit 1 if it does not generate."""
    found = lanes.check(lanes.resolve(name_or_url), timeout_s=timeout_s)
    lines = [
        f"{found.lane} {found.url}",
        f"  {found.engine or 'unknown engine'} {found.version or '?'}, model {found.model}",
    ]
    for name, works in found.works.items():
        detail = found.why.get(name, "")
        if name == "generate" and works:
            detail = f"{found.generate_tokens} tokens in {found.generate_s:.3f} s"
        lines.append(f"  {name:10} {'works' if works else 'fails'}  {detail}".rstrip())
    return Answer(found.data(), "\n".join(lines), 0 if found.ok else 1)


for one in (up, down, list_, check):
    lane.add_command(one)
