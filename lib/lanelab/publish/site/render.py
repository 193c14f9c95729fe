"""From sources to pages: Quarto where it is installed, else the pinned fallback.

Both write into a fresh folder that takes the place of `_site` only when the whole build succeeded.
After either renderer the same finishing touches are made: the feed, dates of files that no clock may
decide, and nothing that a page loads from elsewhere.
"""

from __future__ import annotations

import html
import io
import json
import os
import re
import shutil
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from lanelab.errors import LabError
from lanelab.publish.site import preprocess
from lanelab.publish.site.config import SiteFolders

QUARTO_TIMEOUT_S = 900
# what the fallback says about options that only Quarto reads; they change no word of a page
_QUARTO_ONLY = re.compile(
    r"^(?:format\.html\.(?:respect-user-color-scheme|html-math-method|notebook-links)|execute\.\w+) is ignored"
)
_RENDERED_BY = "Rendered by [Quarto](https://quarto.org)"


class RenderFailed(LabError):
    """The renderer refused the project. Data: `renderer`, `why`."""


class NoQuarto(LabError):
    """Quarto was asked for and is not installed."""


@dataclass(frozen=True)
class Rendering:
    """Which renderer wrote the site, and what it complained about."""

    renderer: str
    warnings: list[str]


def quarto_path() -> str | None:
    """The Quarto command, if it is on the PATH."""
    return shutil.which("quarto")


def which(renderer: str | None) -> str:
    """The renderer that would render, with its version. Raises `NoQuarto`."""
    quarto = quarto_path()
    if renderer == "quarto" and quarto is None:
        raise NoQuarto("quarto is not installed; `lanelab site build --fallback` renders without it")
    if quarto is not None and renderer != "fallback":
        found = subprocess.run([quarto, "--version"], capture_output=True, text=True, check=False)
        return f"Quarto {found.stdout.strip()}"
    return f"smalldocs {version('smalldocs')}"


def render(
    folders: SiteFolders, published: list[str], *, renderer: str | None = None, url: str | None = None
) -> Rendering:
    """Render the project, with the posts of `published`, into `_site`. `renderer` is `quarto`, `fallback` or None for the best there is.

    Raises `NoQuarto`, `RenderFailed`, `BadFile`.
    """
    name = which(renderer)
    if name.startswith("Quarto"):
        return _quarto(folders, str(quarto_path()), name, published, url)
    return _fallback(folders, name, published, url)


def _quarto(folders: SiteFolders, quarto: str, name: str, published: list[str], url: str | None) -> Rendering:
    profile = folders.source / "_quarto-published.yml"
    posts = sorted(path.name for path in (folders.source / "posts").iterdir() if path.is_dir())
    left_out = [f"!posts/{name}/**" for name in posts if name not in published]
    settings = {**_at_address(url), **({"project": {"render": left_out}} if left_out else {})}
    profile.write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [quarto, "render", str(folders.source), "--profile", "published"]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=QUARTO_TIMEOUT_S, env=env, check=False)
    except subprocess.TimeoutExpired as error:
        raise RenderFailed(f"quarto took over {QUARTO_TIMEOUT_S} s", renderer="quarto", why="timeout") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        why = next((line for line in lines if "ERROR" in line), lines[-1] if lines else "no message")
        raise RenderFailed(f"quarto exits with {done.returncode}: {why.strip()}", renderer="quarto", why=done.stderr)
    warnings = [line.strip() for line in done.stderr.splitlines() if "WARN" in line]
    return Rendering(name, warnings)


def _at_address(url: str | None) -> dict[str, Any]:
    """What only a site with an address has: absolute links for others, and a feed."""
    if not url:
        return {"website": {}}
    feed = f'<link rel="alternate" type="application/rss+xml" title="Lane Lab" href="{html.escape(url)}/feed.xml">'
    return {"website": {"site-url": url}, "format": {"html": {"include-in-header": [{"text": feed}]}}}


def _fallback(folders: SiteFolders, name: str, published: list[str], url: str | None) -> Rendering:
    from smalldocs.config import BuildError, ConfigError
    from smalldocs.site import build

    preprocess.stage(folders.source, folders.staging, published)
    config = folders.staging / "_quarto.yml"
    config.write_text(_fallback_config(folders.project(), name, url), encoding="utf-8")
    heard = io.StringIO()
    try:
        with redirect_stdout(heard), redirect_stderr(heard):
            site = build(folders.staging, quiet=True)
    except (BuildError, ConfigError) as error:
        raise RenderFailed(f"smalldocs refuses the project: {error}", renderer=name, why=str(error)) from error
    _search_without_a_server(site.out)
    if folders.built.exists():
        shutil.rmtree(folders.built)
    site.out.replace(folders.built)
    shutil.rmtree(folders.staging)
    return Rendering(name, [text for text in site.warnings if not _QUARTO_ONLY.search(text)])


def _fallback_config(config: dict[str, Any], renderer: str, url: str | None) -> str:
    config["project"] = {**config["project"], "output-dir": "_site"}
    config["project"].pop("render", None)
    website = config["website"]
    footer = json.dumps(website.get("page-footer", {}))
    by = f"Rendered by [{renderer}](https://pypi.org/project/smalldocs/)"
    website["page-footer"] = json.loads(footer.replace(json.dumps(_RENDERED_BY)[1:-1], json.dumps(by)[1:-1]))
    there = _at_address(url)
    website.update(there["website"])
    page = {**(config["format"].get("html") or {}), **there.get("format", {}).get("html", {})}
    config["format"]["html"] = page
    # one stylesheet of ours gives both schemes their colours on top of plain Bootstrap
    page["theme"] = {"light": "default", "dark": "default"}
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True)


def _search_without_a_server(out: Path) -> None:
    """Let the search box read its index from a script too: a page opened from a file may not fetch."""
    index = out / "search.json"
    if not index.is_file():
        return
    content = json.dumps(json.loads(index.read_text(encoding="utf-8")), ensure_ascii=False).replace("</", "<\\/")
    (out / "site_libs" / "search-index.js").write_text(f"window.laneLabSearch = {content};\n", encoding="utf-8")
    script = out / "site_libs" / "smalldocs.js"
    text = script.read_text(encoding="utf-8")
    fetching = 'const r = await fetch(offset + "search.json");\n      index = await r.json();'
    if fetching not in text:
        raise RenderFailed("smalldocs reads its search index in another way than before", renderer="smalldocs", why="")
    loading = (
        "await new Promise((ok, no) => { const s = document.createElement('script');"
        " s.src = offset + 'site_libs/search-index.js'; s.onload = ok; s.onerror = no; document.head.append(s); });\n"
        "      index = window.laneLabSearch;"
    )
    script.write_text(text.replace(fetching, loading), encoding="utf-8")
