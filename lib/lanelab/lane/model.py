"""The lane as it stands in data/lanes/<name>.yaml, and the endpoint that it resolves to."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lanelab import paths
from lanelab.errors import BadFile
from lanelab.lane.errors import BadUrl, MissingKey, UnknownLane
from lanelab.receipts.model import RecipeRef
from lanelab.recipe import Recipe
from lanelab.yamlfile import read_yaml

_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,63}$")
URL_KEY_VARIABLE = "LANELAB_API_KEY"  # for a lane given as a bare URL; no other secret is sent to it


class Lane(BaseModel):
    """A served endpoint that notebooks measure: a recipe brought up here, or a URL that is already up.

    `api_key_env` names the environment variable that holds the key; the key itself is never stored.
    `emulated` says what is emulated, if anything; it goes into every receipt's labels.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    kind: Literal["mini", "attach", "vllm-cpu"]
    says: str = Field(min_length=1)
    url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    recipe: Recipe | None = None
    emulated: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Lane:
        if self.kind == "attach":
            if self.url is None:
                raise ValueError("an attach lane needs a url")
            try:
                base_url(self.url)
            except BadUrl as error:
                raise ValueError(str(error)) from error
        elif self.recipe is None:
            raise ValueError(f"a lane of kind {self.kind} needs a recipe")
        elif self.url is not None:
            raise ValueError(f"a lane of kind {self.kind} gets its url when it is brought up")
        return self

    def recipe_ref(self) -> RecipeRef | None:
        """The recipe's name and digest, known without starting anything; None for a bare URL."""
        return self.recipe.ref() if self.recipe else None


@dataclass(frozen=True)
class Endpoint:
    """Where a lane answers. `base_url` ends in `/v1`; `root_url` is its parent.

    `server` holds what the server said about itself (engine, version, max_model_len), never what it
    was asked for. `started_here` is True if this very call brought it up, in `boot_s` seconds.
    """

    base_url: str
    model: str
    lane_name: str
    recipe: RecipeRef | None = None
    server: dict[str, Any] = field(default_factory=dict)
    emulated: str | None = None
    api_key_env: str | None = None
    started_here: bool = False
    boot_s: float | None = None

    @property
    def root_url(self) -> str:
        """Where `/health`, `/metrics` and `/tokenize` stand."""
        return self.base_url.removesuffix("/v1")

    def headers(self) -> dict[str, str]:
        """The authorization header, if the lane has a key. Raises `MissingKey`."""
        return key_headers(self.lane_name, self.api_key_env)


def key_headers(lane: str, variable: str | None) -> dict[str, str]:
    """`Authorization` from the environment variable. Raises `MissingKey` if a named one is not set."""
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key and variable != URL_KEY_VARIABLE:
        raise MissingKey(
            f"lane {lane!r} needs an API key in the environment variable {variable}, which is not set",
            lane=lane,
            variable=variable,
        )
    return {"Authorization": f"Bearer {key}"} if key else {}


def is_url(name: str) -> bool:
    """Whether this names a URL rather than a file under data/lanes."""
    return "://" in name


def base_url(url: str) -> str:
    """The URL with `/v1` at its end, added if absent. Raises `BadUrl`."""
    try:
        parts = urlsplit(url.strip())
        port_is_valid = parts.port is None or 0 < parts.port < 65536
        httpx.URL(url.strip())
    except (ValueError, httpx.InvalidURL) as error:
        raise BadUrl(f"{url!r} is no URL: {error} (valid: http://HOST:PORT or https://HOST/v1)", url=url) from error
    named = bool(parts.hostname) and not re.search(r"[\s%<>\\]", parts.netloc)
    if parts.scheme not in ("http", "https") or not named or not port_is_valid or parts.query:
        raise BadUrl(f"{url!r} is no URL of a server (valid: http://HOST:PORT or https://HOST/v1)", url=url)
    if parts.username or parts.password:
        raise BadUrl("a key does not belong in a URL: put it in an environment variable and name that in api_key_env")
    path = parts.path.rstrip("/")
    if not path.endswith("/v1"):
        path += "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def lanes_dir() -> Path:
    """The folder of lane files."""
    return paths.data("lanes")


def lane_names() -> list[str]:
    """All lanes that have a file."""
    return sorted(path.stem for path in lanes_dir().glob("*.yaml"))


def load(name_or_url: str) -> Lane:
    """The lane of that name, or an unnamed attach lane for a URL.

    Raises `UnknownLane`, `BadUrl` or `BadFile`.
    """
    if is_url(name_or_url):
        return Lane(
            name="url", kind="attach", says="given as a URL", url=base_url(name_or_url), api_key_env=URL_KEY_VARIABLE
        )
    path = lanes_dir() / f"{name_or_url}.yaml"
    if not _NAME.match(name_or_url) or not path.is_file():
        raise UnknownLane(name_or_url, lane_names())
    lane = read_yaml(path, Lane)
    if lane.name != name_or_url:
        raise BadFile(path, f"is called {lane.name!r}: the name must be the file's, {name_or_url!r}", field="name")
    return lane
