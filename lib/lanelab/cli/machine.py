"""`lanelab machine`: the machines that are known, and this one, measured."""

from __future__ import annotations

import click

from lanelab import machine as machines
from lanelab import machine_here
from lanelab.cli.output import Answer, command
from lanelab.machine import Machine


@click.group("machine")
def machine() -> None:
    """Hardware facts."""


def _line(box: Machine) -> str:
    hbm = f"{box.hbm_gib:g} GiB HBM" if box.has_hbm else "no HBM"
    return f"{box.name:14} {hbm}, {box.host_gib.value:g} GiB host: {box.title}"


@command("list", "lanelab machine list")
def list_machines() -> Answer:
    """The machines under data/machines."""
    found = [machines.load(name) for name in machines.names()]
    data = {
        "machines": [
            {"name": box.name, "title": box.title, "hbm_gib": box.hbm_gib, "host_gib": box.host_gib.value}
            for box in found
        ]
    }
    return Answer(
        data, "\n".join(_line(box) for box in found) or "no machine yet: `lanelab machine measure` makes 'here'"
    )


def _show(box: Machine) -> Answer:
    lines = [_line(box), f"  cpu: {box.cpu.model}, {box.cpu.cores or 'unknown number of'} cores, {box.cpu.arch}"]
    figures = {"host_gib": box.host_gib, "host_gib_s": box.host_gib_s, "link_gib_s": box.link_gib_s}
    figures |= {"reserve_gib": box.reserve_gib, "host_used_gib": box.host_used_gib}
    for gpu in box.gpus:
        lines.append(f"  gpu: {gpu.name}")
        figures |= {f"{gpu.name} hbm_gib": gpu.hbm_gib, f"{gpu.name} hbm_gib_s": gpu.hbm_gib_s}
    for name, figure in figures.items():
        if figure is None:
            continue
        lines.append(f"  {name} {figure.value:g} ({figure.origin}: {figure.source})")
        lines += [f"    also {other.value:g} ({other.origin}: {other.source})" for other in figure.others]
    return Answer(box.model_dump(), "\n".join(lines))


@command("show", "lanelab machine show gb300")
@click.argument("name")
def show(name: str) -> Answer:
    """One machine, each figure with its origin and source."""
    return _show(machines.load(name))


@command("measure", "lanelab machine measure")
def measure() -> Answer:
    """Detect this machine and measure its memory; writes data/machines/here.yaml."""
    box = machine_here.measure()
    machine_here.write(box)
    return _show(box)


machine.add_command(list_machines)
machine.add_command(show)
machine.add_command(measure)
