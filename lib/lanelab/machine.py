"""Machines: what the arithmetic needs to know of a box, each figure with its origin.

A figure carries where it came from. `nominal` is a data sheet's word; `measured` was measured on
that machine by Lane Lab; `published` was measured by somebody else; `derived` was computed from
such figures; `emulated` is a limit that software imposes. Memory is in GiB (2**30 bytes), bandwidth
in GiB/s, so that a division gives seconds without a conversion.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lanelab import paths
from lanelab.errors import NotFound, UsageError
from lanelab.yamlfile import read_yaml

Origin = Literal["measured", "published", "derived", "nominal", "emulated"]
HERE = "here"
_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]*$")


class Part(BaseModel):
    """Base of a machine's parts: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Reading(Part):
    """One figure; its unit stands in the name of the field that holds it."""

    value: float = Field(gt=0)
    origin: Origin
    source: str = Field(min_length=1)
    says: str | None = None


class Figure(Reading):
    """A figure with the other readings of the same quantity, which are shown and never averaged."""

    others: list[Reading] = []


class Gpu(Part):
    """One accelerator that the model may use."""

    name: str
    hbm_gib: Figure  # what the engine sees, not what the label says
    hbm_gib_s: Figure | None = None
    uuid: str | None = None
    driver: str | None = None
    power_limit_w: float | None = None


class Cpu(Part):
    """The host's processor."""

    model: str
    arch: str
    cores: int | None = None


class Machine(Part):
    """Hardware facts of one box. A box without GPUs has one memory: the host's."""

    name: str
    title: str
    says: str | None = None
    cpu: Cpu
    host_gib: Figure
    host_gib_s: Figure | None = None  # copy: bytes read and written together
    link_gib_s: Figure | None = None  # GPU reading host memory
    gpus: list[Gpu] = []
    reserve_gib: Figure | None = None  # graphs, activations and workspace in the memory that holds the model
    host_used_gib: Figure | None = None  # host memory used beside pinned experts while the model serves

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not _NAME.match(value):
            raise ValueError("a machine's name is lower-case letters, digits, '.', '_' and '-'")
        return value

    @property
    def has_hbm(self) -> bool:
        """Whether the model lives in a memory of its own."""
        return bool(self.gpus)

    @property
    def hbm_gib(self) -> float:
        """GiB of HBM that engines see, all GPUs together; 0 without one."""
        return sum(gpu.hbm_gib.value for gpu in self.gpus)

    @property
    def hbm_gib_s(self) -> float | None:
        """HBM bandwidth of all GPUs together; None if one is unknown or there is none."""
        found = [gpu.hbm_gib_s.value for gpu in self.gpus if gpu.hbm_gib_s]
        return sum(found) if found and len(found) == len(self.gpus) else None

    def with_emulated_hbm(self, hbm_gib: float, link_gib_s: float | None) -> Machine:
        """The machine with one emulated tier of HBM inside its host memory, and labelled so.

        Its bandwidth is the host's; the link is as slow as asked, or as the host's memory.
        Raises `UsageError` on a machine that has HBM of its own.
        """
        if self.has_hbm:
            raise UsageError(
                f"machine {self.name!r} has {self.hbm_gib:g} GiB of HBM; an emulated tier goes only with a machine without one",
                machine=self.name, hbm_gib=hbm_gib,
            )  # fmt: skip
        source = "asked for by whoever planned"
        link = Figure(value=link_gib_s, origin="emulated", source=source) if link_gib_s else self.host_gib_s
        gpu = Gpu(
            name="emulated tier of host memory",
            hbm_gib=Figure(value=hbm_gib, origin="emulated", source=source),
            hbm_gib_s=self.host_gib_s,
        )
        return self.model_copy(update={"gpus": [gpu], "link_gib_s": link})

    @property
    def emulated(self) -> str | None:
        """What is emulated, for labels; None if nothing is."""
        found = [f"{gpu.hbm_gib.value:g} GiB HBM" for gpu in self.gpus if gpu.hbm_gib.origin == "emulated"]
        if self.link_gib_s and self.link_gib_s.origin == "emulated":
            found.append(f"link {self.link_gib_s.value:g} GiB/s")
        return ", ".join(found) or None


def machine_path(name: str) -> Path:
    """Where a machine's YAML stands."""
    return paths.data("machines", f"{name}.yaml")


def names() -> list[str]:
    """Names of the machines that are known, `here` among them once it was measured."""
    return sorted(path.stem for path in paths.data("machines").glob("*.yaml"))


def load(name: str) -> Machine:
    """The machine of that name. Raises `NotFound`, `BadFile`."""
    if not _NAME.match(name) or not machine_path(name).is_file():
        hint = "`lanelab machine measure` makes 'here'" if name == HERE else ""
        raise NotFound("machine", name, names(), hint)
    found = read_yaml(machine_path(name), Machine)
    return found
