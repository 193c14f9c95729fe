"""How a server is launched: engine, version, flags and environment, each with its reason.

A recipe's digest covers what reaches the server and nothing else: a changed name, comment or
`why` leaves it alone, so that freshness can be judged without starting anything.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lanelab.receipts.canonical import digest_of
from lanelab.receipts.model import RecipeRef

Value = bool | int | float | str
_FLAG = re.compile(r"^[a-z][a-z0-9-]*$")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class Setting(BaseModel):
    """A flag or variable: its value and why it stands there; `from` names what it was adopted from."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    value: Value
    why: str = Field(min_length=1)
    from_: str | None = Field(None, alias="from")


class Recipe(BaseModel):
    """What is needed to launch an engine the same way again."""

    model_config = ConfigDict(extra="forbid")

    name: str
    engine: Literal["lanelab-mini", "vllm"]
    version: str
    model: str | None = None  # path under the lab's root, or what the engine calls the model
    flags: dict[str, Setting] = {}
    environment: dict[str, Setting] = {}

    @field_validator("flags")
    @classmethod
    def _plain_flags(cls, value: dict[str, Setting]) -> dict[str, Setting]:
        for name in value:
            if not _FLAG.match(name):
                raise ValueError(f"flag {name!r}: write it without dashes in front, lower case, words joined by '-'")
        return value

    @field_validator("environment")
    @classmethod
    def _plain_names(cls, value: dict[str, Setting]) -> dict[str, Setting]:
        for name in value:
            if not _VARIABLE.match(name):
                raise ValueError(f"{name!r} is no name of an environment variable")
        return value

    def arguments(self) -> list[str]:
        """Flags as the engine's command line takes them: `true` is the bare flag, `false` leaves it out."""
        words: list[str] = []
        for name, setting in self.flags.items():
            if setting.value is True:
                words.append(f"--{name}")
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
        return {
            "engine": self.engine,
            "version": self.version,
            "model": self.model,
            "flags": {name: setting.value for name, setting in self.flags.items()},
            "environment": {name: setting.value for name, setting in self.environment.items()},
        }

    def ref(self) -> RecipeRef:
        """Name and digest, as a receipt records them."""
        return RecipeRef(name=self.name, digest=digest_of(self.engaged_part()))
