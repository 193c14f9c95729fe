"""A model's facts: its shape and its byte ledger, by role.

A ledger entry says how many bytes a role takes, how they are stored, whether a text server loads
them, and whether a decode step reads them. The embedding is loaded but a step reads one row of it;
vision, audio and drafter are not read by plain text decoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from lanelab.checkpoint.dtypes import dtype
from lanelab.checkpoint.shape import Shape
from lanelab.errors import LabError, NotFound

Origin = Literal["derived", "published", "header"]

EXPERTS = "routed_experts"
# role: whether one decode step reads all of it
ROLES = {
    EXPERTS: False, "shared_experts": True, "router": True, "qkv_proj": True, "o_proj": True, "attention": True,
    "dense_mlp": True, "norm": True, "head": True, "embedding": False, "vision": False, "audio": False,
    "drafter": False, "other_loaded": False, "other_on_disk": False,
}  # fmt: skip
NOT_LOADED = {"drafter", "other_on_disk"}


class NoScaleSplit(LabError):
    """A role's parameters are unknown, so its bytes in another dtype are too. Data: `role`."""


class Part(BaseModel):
    """Base of a model's parts: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Entry(Part):
    """One role's bytes. `parameters` is None where only bytes are known."""

    role: str
    parameters: int | None
    weight_bytes: int = Field(ge=0)
    scale_bytes: int = Field(0, ge=0)
    dtype: str
    origin: Origin
    says: str | None = None

    @property
    def bytes(self) -> int:
        """Weights and scales."""
        return self.weight_bytes + self.scale_bytes

    @property
    def loaded(self) -> bool:
        """Whether a text server without speculation loads it."""
        return self.role not in NOT_LOADED

    @property
    def read_each_step(self) -> bool:
        """Whether every decode step reads all of it."""
        return ROLES.get(self.role, False)

    def stored_as(self, name: str) -> Entry:
        """The same role stored in another dtype. Raises `UnknownDtype`, `NoScaleSplit`."""
        target = dtype(name)
        if self.parameters is None:
            raise NoScaleSplit(
                f"{self.role}: only its bytes are known, not its parameters; --set can't apply", role=self.role
            )
        return self.model_copy(
            update={
                "weight_bytes": target.weight_bytes(self.parameters),
                "scale_bytes": target.scales(self.parameters),
                "dtype": name,
                "origin": "derived",
            }
        )


class Quoted(Part):
    """One source's word on a quantity."""

    value: float
    says: str
    source: str


class Disagreement(Part):
    """A quantity on which sources differ: all values are shown, none is averaged."""

    what: str
    unit: str
    values: list[Quoted] = Field(min_length=2)
    says: str | None = None


class Facts(Part):
    """What the arithmetic needs of a model."""

    name: str
    title: str
    shape: Shape
    ledger: list[Entry]
    kv_dtype: str = "bf16"
    checkpoint_bytes: int | None = None
    nonexpert_loaded_bytes: int | None = None  # given by a source; None: the ledger's sum
    cell_bytes_measured: bool = False  # from headers, not from the config
    warnings: list[str] = []
    disagreements: list[Disagreement] = []

    def entry(self, role: str) -> Entry:
        """A role's entry. Raises `NotFound`."""
        for item in self.ledger:
            if item.role == role:
                return item
        raise NotFound("role", role, [item.role for item in self.ledger])

    def has(self, role: str) -> bool:
        """Whether the model has that role."""
        return any(item.role == role for item in self.ledger)

    @property
    def cells(self) -> int:
        """Routed experts of all layers."""
        return self.shape.cells

    @property
    def cell_weight_bytes(self) -> int:
        """Bytes of one cell without its scales."""
        return self.entry(EXPERTS).weight_bytes // self.cells if self.cells else 0

    @property
    def cell_scale_bytes(self) -> int:
        """Bytes of one cell's scales."""
        return self.entry(EXPERTS).scale_bytes // self.cells if self.cells else 0

    @property
    def nonexpert_bytes(self) -> int:
        """Bytes loaded beside the routed experts."""
        return sum(item.bytes for item in self.ledger if item.loaded and item.role != EXPERTS)

    @property
    def read_bytes(self) -> int:
        """Non-expert bytes that one decode step reads."""
        return sum(item.bytes for item in self.ledger if item.read_each_step)

    @property
    def parameters_total(self) -> int:
        """All parameters whose number is known."""
        return total(item.parameters for item in self.ledger)

    @property
    def parameters_active(self) -> int:
        """Parameters that one token of text touches: everything loaded and not routed, embedding
        included, and `top_k` experts a layer. Roles whose parameters are unknown count as none."""
        dense = total(
            item.parameters
            for item in self.ledger
            if item.loaded and item.role not in {EXPERTS, "vision", "audio", "other_loaded"}
        )
        cell = self.entry(EXPERTS).parameters or 0 if self.cells else 0
        return dense + (cell // self.cells * self.shape.picks_per_token if self.cells else 0)

    def set_dtype(self, role: str, name: str) -> Facts:
        """The model with one role stored otherwise. Raises `NotFound`, `UnknownDtype`, `NoScaleSplit`."""
        changed = self.entry(role).stored_as(name)
        ledger = [changed if item.role == role else item for item in self.ledger]
        return self.model_copy(update={"ledger": ledger})


def total(values: Iterable[int | None]) -> int:
    """Sum of what is known."""
    return sum(value for value in values if value is not None)
