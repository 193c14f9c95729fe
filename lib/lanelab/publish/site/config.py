"""What the site publishes and where its files lie.

`site/site.yaml` names the campaigns, in the order of the index. Everything the build makes (the
executed notebooks, the variables, the receipts browser, the pages) lies under `site/` too and is
ignored by git; the sources are never changed by a build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lanelab.campaign import BadName, check_name
from lanelab.errors import BadFile
from lanelab.yamlfile import load_yaml, read_yaml


class SiteConfig(BaseModel):
    """`site.yaml`: the campaigns on the site, and the address it is published at."""

    model_config = ConfigDict(extra="forbid")

    campaigns: list[str] = Field(min_length=1)
    url: str | None = None  # RSS and social images need absolute addresses; without one they are left out

    @field_validator("campaigns")
    @classmethod
    def _plain_names(cls, names: list[str]) -> list[str]:
        for name in names:
            try:
                check_name(name)
            except BadName as error:
                raise ValueError(str(error)) from error
        if len(set(names)) != len(names):
            raise ValueError("a campaign is named twice")
        return names

    @field_validator("url")
    @classmethod
    def _absolute(cls, url: str | None) -> str | None:
        if url is not None and not re.match(r"^https?://[^/\s]+", url):
            raise ValueError(f"{url!r} is no address; it starts with https:// or http://")
        return url.rstrip("/") if url else None


@dataclass(frozen=True)
class SiteFolders:
    """The folders of one site project, all under the lab's root."""

    lab: Path

    @property
    def source(self) -> Path:
        """The Quarto project."""
        return self.lab / "site"

    @property
    def built(self) -> Path:
        """The website: what is served and published."""
        return self.source / "_site"

    @property
    def notebooks(self) -> Path:
        """The executed notebooks, `<campaign>/<step>.ipynb`."""
        return self.source / "notebooks-out"

    @property
    def staging(self) -> Path:
        """The fallback's own copy of the project, with references resolved."""
        return self.source / ".fallback"

    @property
    def cache(self) -> Path:
        """Executed notebooks by render key."""
        return self.lab / ".cache" / "site"

    def campaign(self, name: str) -> Path:
        """A campaign's folder of data."""
        return self.lab / "data" / "campaigns" / name

    def config(self) -> SiteConfig:
        """Read `site.yaml`. Raises `BadFile`."""
        path = self.source / "site.yaml"
        if not path.is_file():
            raise BadFile(path, "does not exist; it lists the campaigns that the site publishes")
        return read_yaml(path, SiteConfig)

    def project(self) -> dict[str, Any]:
        """Read `_quarto.yml`. Raises `BadFile` when it is no website project."""
        path = self.source / "_quarto.yml"
        value = load_yaml(path)
        for name in ("project", "website", "format"):
            if not isinstance(value, dict) or not isinstance(value.get(name), dict):
                raise BadFile(path, "must be a website project with project, website and format", field=name)
        return dict(value)


def measured(folder: Path) -> bool:
    """Whether a campaign has a receipt, and so something to publish."""
    return any((folder / "receipts").glob("*/*.json"))
