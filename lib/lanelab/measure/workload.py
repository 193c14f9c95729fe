"""A workload: what is sent to a lane and which rows come back.

Everything here can be asked without a lane: presets, parameters and what they resolve to, which is
what the measure key is made from.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lanelab.errors import NotFound, UsageError

if TYPE_CHECKING:
    from lanelab.measure.bench import Bench

Row = dict[str, Any]
DEFAULT_PRESET = "quick"


class Parameters(BaseModel):
    """Base of a workload's parameters: those that change the figures, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Group:
    """Rows that belong together: requests in flight at one time, and what proves their state."""

    rows: list[Row]
    evidence: Row


Measure = Callable[["Bench", Any, Callable[[Row], bool]], AsyncIterator[Group]]


@dataclass(frozen=True)
class Workload:
    """One registered workload. `version` is raised when the same parameters would measure otherwise."""

    name: str
    version: int
    kind: str  # of its receipts
    says: str
    model: type[Parameters]
    presets: Mapping[str, dict[str, Any]]
    identity: tuple[str, ...]  # row fields that name a group; a journaled group is not measured again
    groups: Callable[[Any], list[Row]]  # parameters to the identities of all groups, in order
    measure: Measure  # yields the groups that are not yet done

    def resolve(self, preset: str | None = None, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A preset (`quick` if none is named) with some parameters replaced, checked, as plain values.

        Raises `NotFound` for an unknown preset or parameter, `UsageError` for a value that cannot be.
        """
        name = preset or DEFAULT_PRESET
        if name not in self.presets:
            raise NotFound(f"preset of {self.name}", name, self.presets)
        for given in parameters or {}:
            if given not in self.model.model_fields:
                raise NotFound(f"parameter of {self.name}", given, self.model.model_fields)
        try:
            return self.model.model_validate({**self.presets[name], **(parameters or {})}).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"parameter {field} of {self.name}: {first['msg']}, not {first['input']!r}") from error

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """The identity of the group that a row belongs to."""
        return tuple(row.get(name) for name in self.identity)
