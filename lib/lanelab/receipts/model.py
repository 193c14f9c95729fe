"""The receipt: the immutable record of one measurement."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lanelab.receipts.canonical import canonical_bytes, digest_of

SCHEMA = "lanelab/receipt/1"
Origin = Literal["measured", "published", "derived", "predicted"]
Visibility = Literal["public", "private"]
_ID = re.compile(r"[a-z0-9][a-z0-9-]{3,99}")


class Part(BaseModel):
    """Base of a receipt's parts: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RecipeRef(Part):
    """The recipe that the lane was launched with; `digest` leaves out names and comments."""

    name: str
    digest: str | None = None


class Labels(Part):
    """How far the figures can be trusted, and by what evidence."""

    state: Literal["warm", "cold", "contended", "unknown"] = "unknown"
    evidence: dict[str, Any] = {}
    emulated: str | None = None  # what was emulated, if anything


class Source(Part):
    """Where the figures came from."""

    git_commit: str | None = None
    git_dirty: bool | None = None
    notebook: str | None = None
    workload: str | None = None
    workload_version: int | None = None
    citation: str | None = None  # for `published`
    path: str | None = None
    note: str | None = None


class Environment(Part):
    """The machine, client and server as they were found, not as they were asked for."""

    client: dict[str, Any] = {}
    server: dict[str, Any] = {}
    gpu: list[dict[str, Any]] = []


class RowsFile(Part):
    """Rows that are kept beside the receipt in Parquet (over 1 MB as JSON)."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{3,99}\.parquet\z")
    count: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}\z")


class Receipt(Part):
    """One measurement: rows, units, provenance, digest. See site/docs/formats.md."""

    schema_: str = Field(SCHEMA, alias="schema")
    id: str
    kind: str
    kind_version: int = 1
    origin: Origin
    visibility: Visibility = "public"
    campaign: str
    machine: str | None = None
    model: str | None = None
    recipe: RecipeRef | None = None
    boot: str | None = None
    lane: str | None = None
    step: str | None = None
    run: str | None = None
    started: datetime | None = None
    finished: datetime | None = None
    parameters: dict[str, Any] = {}
    labels: Labels = Labels()
    environment: Environment = Environment()
    source: Source = Source()
    units: dict[str, str] = {}
    rows: list[dict[str, Any]] | RowsFile = []
    supersedes: str | None = None
    digest: str | None = None

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @field_validator("id")
    @classmethod
    def _plain_id(cls, value: str) -> str:
        if not _ID.fullmatch(value):
            raise ValueError("an id is 4 to 100 lower-case letters, digits and hyphens")
        return value

    def body(self) -> dict[str, Any]:
        """The receipt as plain JSON values; times are UTC with a Z, to the millisecond."""
        value = self.model_dump(mode="python", by_alias=True)
        for name in ("started", "finished"):
            if isinstance(value[name], datetime):
                value[name] = utc_text(value[name])
        return value

    def __repr__(self) -> str:
        """One line, so that a notebook cell that ends in a receipt does not print it whole."""
        count = self.rows.count if isinstance(self.rows, RowsFile) else len(self.rows)
        return f"<receipt {self.id}: {self.origin}, {count} row{'' if count == 1 else 's'}>"

    def sealed(self) -> Receipt:
        """A copy with its digest."""
        return self.model_copy(update={"digest": digest_of(self.body())})

    def file_bytes(self) -> bytes:
        """What stands in the file: canonical bytes and LF."""
        return canonical_bytes(self.body()) + b"\n"


def utc_text(moment: datetime) -> str:
    """`2026-09-22T22:50:30.125Z`, without a fraction when the milliseconds are none; no zone means UTC.

    Milliseconds order what happens within one second; finer digits would claim more than clocks keep.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    moment = moment.astimezone(UTC)
    thousandths = moment.microsecond // 1000
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{thousandths:03}" if thousandths else "") + "Z"


def new_id(kind: str, started: datetime) -> str:
    """`decode-20260922t225030z-1f2e3d4c`: sorts by time, does not collide between runs."""
    if started.tzinfo is None:
        started = started.replace(tzinfo=UTC)
    return f"{kind}-{started.astimezone(UTC).strftime('%Y%m%dt%H%M%Sz')}-{secrets.token_hex(4)}"


def lane_label(lane: str | None) -> str | None:
    """How a receipt names a lane: by its name, or `attached` for a URL, whose host is nobody's business."""
    return "attached" if lane is not None and "://" in lane else lane
