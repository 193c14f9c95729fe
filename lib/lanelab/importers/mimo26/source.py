"""Where the figures come from, and the frame that all receipts of this campaign share."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from lanelab.errors import BadFile
from lanelab.receipts import Environment, Labels, Receipt, RecipeRef, Source

CAMPAIGN = "mimo26-pro-gb300"
MACHINE = "gb300"
MODEL = "mimo-v2.6-pro"
REPOSITORY = "J-M-Recipes/recipes"
FOLDER = "recipes/dgx-station-gb300/mimo-v2.6-pro-vllm-uva-hotsplit"
AUTHORS = "J. Meadlock and Milo, J&M Recipes"
LICENCE = "MIT according to the repository's README (commit c7856cf7); no licence text was found at its root"
CDT = timezone(timedelta(hours=-5))  # the sources' local time

COMMITS = {
    "66bebb58": "66bebb5812a7ab38690e9e7d8b77dff96390f618",
    "6cd315c9": "6cd315c935c7efa44c2b39228714f5e820b3cec9",
    "cc1f70ea": "cc1f70eaf5f1c61e47f655fd6b0952d68fc201ce",
    "c22bc263": "c22bc2633da40d4b0fd26c6f0d879a9a6c157e36",
    "b929f9f5": "b929f9f5407019f7d0b9413dc65112b902d1c247",
    "bb95d4f1": "bb95d4f1aecd54ca3163f53adf5b2b0098ad04c6",
    "57111f17": "57111f173173567499ce0e9f89207e59384db697",
    "afdb4121": "afdb41213c7c45ce5a5e6372da27af7985d6a5df",
    "30e83055": "30e83055e4970d6ec8b4555951493741124afaaa",
    "34972a1a": "34972a1a6d7dee2c3872985e261a45a6d26928b2",
}

Figures = dict[str, Any]


class PublishedFolder:
    """Reads the folder of published figures; every unreadable file is a `BadFile` that names it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "facts.json").is_file():
            raise BadFile(folder, "holds no facts.json: give the folder of the published figures")

    def json(self, name: str) -> Any:
        """One JSON file; the literal NaN of some sources is read as null."""
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
        except OSError as error:
            raise BadFile(path, f"cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise BadFile(path, f"is not JSON: {error}") from error

    def lines(self, name: str) -> list[Any]:
        """One JSON value a line."""
        path = self.folder / name
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise BadFile(path, f"cannot be read as JSON lines: {error}") from error

    def facts(self) -> dict[str, Any]:
        """Values of facts.json by key."""
        return {row["key"]: row["value"] for row in self.json("facts.json")["facts"]}


def citation(*commits: str) -> str:
    """Who published it, where, at which commit, under which licence."""
    at = " or ".join(COMMITS[commit] for commit in commits)
    return f"{AUTHORS}, {REPOSITORY}" + (f", commit {at}" if at else "") + f"; {LICENCE}"


def local_time(text: str) -> datetime:
    """A source's local time (CDT, no zone written) as UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=CDT).astimezone(UTC)


def day(text: str) -> datetime:
    """A source that is dated to the day only: midnight UTC; `frame` says so in the receipt."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slug(text: str) -> str:
    """Lower-case letters, digits and hyphens, as an id needs them."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def frame(
    kind: str,
    name: str,
    rows: list[dict[str, Any]],
    *,
    path: str | None,
    commits: tuple[str, ...] = (),
    boot: str | None = None,
    started: datetime | None = None,
    finished: datetime | None = None,
    dated: str | None = None,
    state: Any = "unknown",
    evidence: dict[str, Any] | None = None,
    parameters: dict[str, Any] | None = None,
    environment: Environment | None = None,
    note: str | None = None,
    origin: Any = "published",
) -> Receipt:
    """One receipt of this campaign; `dated` is a source's day where it gives no time."""
    evidence = dict(evidence or {})
    if dated and started is None and finished is None:
        finished = day(dated)
        evidence["time"] = "the source gives the day only"
    return Receipt(
        id=f"{kind}-{slug(name)}",
        kind=kind,
        origin=origin,
        campaign=CAMPAIGN,
        machine=MACHINE,
        model=MODEL,
        recipe=RecipeRef(name=boot) if boot else None,
        boot=boot,
        started=started,
        finished=finished,
        parameters=parameters or {},
        labels=Labels(state=state, evidence=evidence),
        environment=environment or Environment(),
        source=Source(citation=citation(*commits), path=path, note=note),
        rows=rows,
    )
