"""What a receipt's rows hold, one pydantic model a kind.

A kind has a name, a version (raised when a row's meaning changes) and a row model; a field's unit
stands in the field, so that tables, figures and facts take it from here. Kinds register when their
module is imported; `load_all` imports every module of this package.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lanelab.errors import LabError, NotFound

# Columns that every view takes from the receipt itself; no row may use these names.
ENVELOPE = (
    "receipt", "campaign", "origin", "visibility", "machine", "model", "recipe", "boot", "lane",
    "step", "run", "started", "finished", "state", "emulated", "parameters", "digest", "row",
)  # fmt: skip


class Row(BaseModel):
    """Base of all row models: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Kind:
    """A registered kind of receipt."""

    name: str
    version: int
    row: type[Row]
    says: str

    @property
    def view(self) -> str:
        """The name of its SQL view."""
        return self.name.replace("-", "_")

    @property
    def units(self) -> dict[str, str]:
        """Field name to unit, for the fields that have one."""
        found = {}
        for name, field in self.row.model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and isinstance(extra.get("unit"), str):
                found[name] = str(extra["unit"])
        return found


KINDS: dict[str, Kind] = {}


class BadKind(LabError):
    """A kind is registered wrongly: a defect in the code that registers it."""


def measured_in(unit: str, default: Any = ..., says: str = "", **rules: Any) -> Any:
    """A row field with a unit (`s`, `tok/s`, `GiB`, `tokens`, `1` for a pure number)."""
    return Field(default, description=says, json_schema_extra={"unit": unit}, **rules)


def register(name: str, version: int, row: type[Row], says: str) -> Kind:
    """Make a kind known. Raises `BadKind` for a second registration or a clash with the envelope."""
    if name in KINDS and KINDS[name].row is not row:
        raise BadKind(f"kind {name!r} is registered twice", kind=name)
    if clash := sorted(set(row.model_fields) & set(ENVELOPE)):
        raise BadKind(f"kind {name!r}: row fields {clash} are names of the receipt itself", kind=name)
    KINDS[name] = Kind(name, version, row, says)
    return KINDS[name]


def load_all() -> dict[str, Kind]:
    """Import every module of this package and return all kinds by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return KINDS


def kind(name: str) -> Kind:
    """The kind of that name. Raises `NotFound`."""
    if name not in KINDS:
        load_all()
    if name not in KINDS:
        raise NotFound("receipt kind", name, KINDS)
    return KINDS[name]
