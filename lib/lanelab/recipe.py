"""How a server is launched: engine, image, flags, environment and patches, each with its reason.

A recipe's digest covers what reaches the server and nothing else: a changed name, comment, `why`,
`from` or note on upstream leaves it alone, so that freshness can be judged without starting anything.
Flags are a set: their order does not count, since engines parse them by name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lanelab.receipts.canonical import digest_of
from lanelab.receipts.model import RecipeRef
from lanelab.yamlfile import read_yaml

Value = bool | int | float | str
Values = list[int | float | str]
_FLAG = re.compile(r"^[a-z][a-z0-9-]*$")
_DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class Setting(BaseModel):
    """A flag or variable: its value and why it stands there; `from` names what it was adopted from."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    value: Value | Values  # a list gives the flag several words
    why: str = Field(min_length=1)
    from_: str | None = Field(None, alias="from")


class Image(BaseModel):
    """A container image. Without a digest the same name can mean another image tomorrow."""

    model_config = ConfigDict(extra="forbid")

    name: str
    digest: str | None = None

    @field_validator("digest")
    @classmethod
    def _sha256(cls, value: str | None) -> str | None:
        if value is not None and not _DIGEST.match(value):
            raise ValueError("an image's digest is 'sha256:' and 64 hex digits")
        return value


class Patch(BaseModel):
    """A file laid over the engine's own: what it does, its content's sha256, and when it can go."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str
    target: str  # the engine's file that it replaces or adds, as the server sees it
    sha256: str
    why: str = Field(min_length=1)
    from_: str | None = Field(None, alias="from")
    upstream: str | None = None  # pull request or issue
    upstream_state: Literal["open", "merged", "closed", "none"] | None = None
    drop_when: str | None = None

    @field_validator("sha256")
    @classmethod
    def _hex(cls, value: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{64}", value):
            raise ValueError("a patch's sha256 is 64 hex digits")
        return value


class Recipe(BaseModel):
    """What is needed to launch an engine the same way again."""

    model_config = ConfigDict(extra="forbid")

    name: str
    engine: Literal["lanelab-mini", "vllm", "sglang"]
    version: str
    says: str | None = None
    image: Image | None = None
    model: str | None = None  # path under the lab's root, or what the engine calls the model
    flags: dict[str, Setting] = {}
    environment: dict[str, Setting] = {}
    patches: list[Patch] = []

    @field_validator("flags")
    @classmethod
    def _plain_flags(cls, value: dict[str, Setting]) -> dict[str, Setting]:
        for name in value:
            if not _FLAG.match(name):
                raise ValueError(f"flag {name!r}: write it without dashes in front, lower case, words joined by '-'")
        return value

    @field_validator("patches")
    @classmethod
    def _one_a_target(cls, value: list[Patch]) -> list[Patch]:
        targets = [patch.target for patch in value]
        for target in targets:
            if targets.count(target) > 1:
                raise ValueError(f"two patches replace {target!r}")
        return value

    @field_validator("environment")
    @classmethod
    def _plain_names(cls, value: dict[str, Setting]) -> dict[str, Setting]:
        for name, setting in value.items():
            if not _VARIABLE.match(name):
                raise ValueError(f"{name!r} is no name of an environment variable")
            if isinstance(setting.value, list):
                raise ValueError(f"{name}: an environment variable holds one value, not a list")
        return value

    def arguments(self) -> list[str]:
        """Flags as the engine's command line takes them: `true` is the bare flag, `false` leaves it out,
        a list follows its flag word by word."""
        words: list[str] = []
        for name, setting in self.flags.items():
            if setting.value is True:
                words.append(f"--{name}")
            elif isinstance(setting.value, list):
                words += [f"--{name}", *map(str, setting.value)]
            elif setting.value is not False:
                words += [f"--{name}", str(setting.value)]
        return words

    def variables(self) -> dict[str, str]:
        """The environment that the recipe adds; booleans are `1` and `0`."""
        return {
            name: str(int(setting.value)) if isinstance(setting.value, bool) else str(setting.value)
            for name, setting in self.environment.items()
        }

    def engaged_part(self) -> dict[str, Any]:
        """What the digest covers: all that reaches the server; no names, comments or reasons."""
        part: dict[str, Any] = {
            "engine": self.engine,
            "version": self.version,
            "model": self.model,
            "flags": {name: setting.value for name, setting in self.flags.items() if setting.value is not False},
            "environment": self.variables(),
        }
        if self.image:
            part["image"] = self.image.digest or self.image.name
        if self.patches:
            part["patches"] = {patch.target: patch.sha256 for patch in self.patches}
        return part

    @property
    def digest(self) -> str:
        """`sha256:` and the hex digest of `engaged_part`."""
        return digest_of(self.engaged_part())

    def ref(self) -> RecipeRef:
        """Name and digest, as a receipt records them."""
        return RecipeRef(name=self.name, digest=self.digest)


def load(path: Path) -> Recipe:
    """A recipe's YAML file. Raises `BadFile` with line and field."""
    return read_yaml(path, Recipe)
