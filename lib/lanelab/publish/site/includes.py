"""What pages take in and nobody types: the entries of the index, and the day of a campaign's posts."""

from __future__ import annotations

import re
from pathlib import Path

from lanelab import campaign as campaigns
from lanelab.publish.generated import put
from lanelab.publish.site.config import SiteConfig, SiteFolders
from lanelab.publish.site.source import read_page

NAME = "_campaigns.md"
_HEAD = "<!-- Made by `lanelab site build` from site.yaml and the posts; not edited by hand. -->\n\n"
_DAY_HEAD = "# Made by `lanelab site build`: the day of the newest receipt."


def write(folders: SiteFolders, config: SiteConfig, published: list[str], skipped: dict[str, str]) -> None:
    """Write what `index.qmd` includes."""
    put(folders.source / NAME, _HEAD + index(folders, config, published, skipped))


def write_day(folders: SiteFolders, name: str, day: str) -> None:
    """Date the posts of a campaign by its newest receipt, unless their folder has metadata of its own."""
    path = folders.source / "posts" / name / "_metadata.yml"
    if not path.is_file() or made(path):
        put(path, f"{_DAY_HEAD}\ndate: {day}\n")


def made(path: Path) -> bool:
    """Whether a folder's metadata was written here."""
    return path.read_text(encoding="utf-8").startswith(_DAY_HEAD)


def index(folders: SiteFolders, config: SiteConfig, published: list[str], skipped: dict[str, str]) -> str:
    """Each campaign with its answer in one line; those that are not published, with the reason."""
    parts: list[str] = []
    for name in config.campaigns:
        if name in published:
            parts += _entry(folders, name)
        else:
            title = "This machine" if name == campaigns.HERE else name
            parts += [f"### {title} {{.unlisted}}", "", f"[not yet]{{.badge .missing}} {_sentence(skipped[name])}", ""]
    return "\n".join(parts) + "\n"


def _entry(folders: SiteFolders, name: str) -> list[str]:
    page = read_page(folders.source / "posts" / name / "index.qmd")
    title = str(page.front.get("title") or name)
    lines = [f"### [{title}](/posts/{name}/index.qmd) {{.unlisted}}", ""]
    if answer := page.front.get("answer") or page.front.get("description"):
        lines += [" ".join(str(answer).split()), ""]
    links = [f"[Lab log](/posts/{name}/index.qmd)"]
    if (folders.source / "posts" / name / "companion.qmd").is_file():
        links.append(f"[In plain words](/posts/{name}/companion.qmd)")
    links.append(f"[Receipts](/receipts/{name}/index.html)")
    return [*lines, f"::: {{.campaign-links}}\n{' · '.join(links)}\n:::", ""]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if re.search(r"[.!?]$", text) else ".")
