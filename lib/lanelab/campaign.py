"""A campaign: the effort to serve one model on one machine, as `campaign.yaml` plans it.

`data/campaigns/<name>/campaign.yaml` names model, machine and lane, and lists the steps (notebooks
with their parameters). Receipts, runs, facts, claims and corrections lie beside it. `here` is the
campaign of whoever cloned the lab; git ignores it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from lanelab.errors import BadFile, LabError, NotFound
from lanelab.paths import data
from lanelab.yamlfile import read_yaml

HERE = "here"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class BadName(LabError):
    """A campaign's or step's name cannot be a folder's name everywhere. Data: `name`."""

    exit_code = 2


class Step(BaseModel):
    """One notebook of the plan. `lane` stands in for the campaign's; `parameters` are typed values."""

    model_config = ConfigDict(extra="forbid")

    step: str
    lane: str | None = None
    parameters: dict[str, Any] = {}

    @field_validator("step")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no step's name (lower-case letters, digits and hyphens)")
        return value


class Campaign(BaseModel):
    """What `campaign.yaml` holds. See site/docs/formats.md."""

    model_config = ConfigDict(extra="forbid")

    name: str
    title: str
    model: str | None = None  # a folder of data/models
    machine: str | None = None  # a file of data/machines, or "here"
    lane: str | None = None  # a file of data/lanes, or a URL
    steps: list[Step] = []
    says: str | None = None

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no campaign's name (lower-case letters, digits and hyphens)")
        return value

    @field_validator("steps")
    @classmethod
    def _once(cls, value: list[Step]) -> list[Step]:
        seen: set[str] = set()
        for step in value:
            if step.step in seen:
                raise ValueError(f"step {step.step!r} stands twice")
            seen.add(step.step)
        return value

    @property
    def dir(self) -> Path:
        """The campaign's folder."""
        return folder(self.name)

    def step(self, name: str) -> Step:
        """The plan's entry of that step. Raises `NotFound`."""
        for step in self.steps:
            if step.step == name:
                return step
        raise NotFound(f"step of campaign {self.name!r}", name, (step.step for step in self.steps))

    def lane_of(self, step: Step) -> str | None:
        """The lane that the step measures."""
        return step.lane or self.lane


def check_name(name: str) -> str:
    """The name, if it can be a campaign's. Raises `BadName`."""
    if not _NAME.fullmatch(name):
        raise BadName(f"{name!r} is no campaign's name: use 1 to 64 lower-case letters, digits and hyphens", name=name)
    return name


def folder(name: str) -> Path:
    """`data/campaigns/<name>`, whether it exists or not. Raises `BadName`, `NoLab`."""
    return data("campaigns", check_name(name))


def names() -> list[str]:
    """The campaigns that have a plan."""
    return sorted(path.parent.name for path in data("campaigns").glob("*/campaign.yaml"))


def load(name: str) -> Campaign:
    """The campaign of that name. Raises `NotFound`, `BadFile`, `BadName`."""
    path = folder(name) / "campaign.yaml"
    if not path.is_file():
        hint = "`make campaign` or `lanelab campaign run here` creates it" if name == HERE else ""
        raise NotFound("campaign", name, names(), hint)
    found = read_yaml(path, Campaign)
    if found.name != name:
        raise BadFile(path, f"name {found.name!r} is not the folder's, {name!r}", field="name")
    return found


def planned(name: str) -> Campaign | None:
    """The campaign of that name; None for `here` before it has a plan. Raises `NotFound`, `BadFile`."""
    try:
        return load(name)
    except NotFound:
        if name == HERE:
            return None
        raise
