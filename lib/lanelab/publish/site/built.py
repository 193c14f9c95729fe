"""The built pages, read back as a browser would read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup
from bs4.element import Tag

# parts of a page that neither the sources nor a reader would count as its words
_FRAME = "script, style, template, nav, .code-copy-button, .callout-icon-container, .header-section-number"
_DASHES = str.maketrans(
    {"—": "-", "–": "-", "‑": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "…": "...", "\u00ad": ""}
)


def squeezed(text: str) -> str:
    """Text for comparing: no white space, plain quotes and dashes, so that layout does not matter."""
    plain = re.sub(r"[\s\u200b\u2060\ufeff]+", "", text.translate(_DASHES))
    return re.sub(r"-{2,}", "-", plain)


@dataclass
class BuiltPage:
    """One built page; `path` is relative to the site."""

    path: Path
    text: str

    @cached_property
    def soup(self) -> BeautifulSoup:
        """The page's tree; elements know their line."""
        return BeautifulSoup(self.text, "html.parser")

    @cached_property
    def main(self) -> Tag:
        """What the page says: without frame, navigation and scripts."""
        soup = BeautifulSoup(self.text, "html.parser")
        main = soup.find("main") or soup.find("body") or soup
        assert isinstance(main, Tag)
        for part in main.select(_FRAME):
            part.decompose()
        return main

    @cached_property
    def ids(self) -> set[str]:
        """Every anchor of the page."""
        found = {str(tag["id"]) for tag in self.soup.find_all(id=True)}
        return found | {str(tag["name"]) for tag in self.soup.find_all("a", attrs={"name": True})}

    @cached_property
    def headings(self) -> list[str]:
        """The headings' texts in order, the title first."""
        return [" ".join(tag.get_text().split()) for tag in self.main.find_all(re.compile("^h[1-6]$"))]

    @cached_property
    def captions(self) -> list[str]:
        """The captions of figures and tables in order."""
        found = self.main.find_all(["figcaption", "caption"])
        return [" ".join(tag.get_text().replace("\u00a0", " ").split()) for tag in found]

    @cached_property
    def words(self) -> str:
        """All that the page says, squeezed."""
        return squeezed(self.main.get_text(" "))

    def links(self) -> list[tuple[str, int, str]]:
        """Every address the page names: (address, line, whether `link` or `load`)."""
        found = []
        for tag in self.soup.find_all(["a", "area"], href=True):
            found.append((str(tag["href"]), tag.sourceline or 0, "link"))
        for tag in self.soup.find_all(["img", "script", "source", "iframe", "video", "audio"], src=True):
            found.append((str(tag["src"]), tag.sourceline or 0, "load"))
        for tag in self.soup.find_all("link", href=True):
            rels = set(tag.get("rel") or [])
            if rels & {"stylesheet", "icon", "preload", "modulepreload", "alternate"}:
                found.append((str(tag["href"]), tag.sourceline or 0, "link" if "alternate" in rels else "load"))
        return found


class BuiltSite:
    """All pages of a built site."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {
            path.relative_to(folder): BuiltPage(path.relative_to(folder), path.read_text(encoding="utf-8"))
            for path in sorted(folder.rglob("*.html"))
        }

    def dead(self, page: BuiltPage, address: str) -> str:
        """Why an address of a page leads nowhere; empty if it does not."""
        path_text, _, anchor = address.partition("#")
        path_text = unquote(path_text.partition("?")[0])
        if path_text.startswith("/"):
            return "an address from the root breaks on a sub-path and from a file"
        target = Path(*_normal((*page.path.parent.parts, *Path(path_text).parts))) if path_text else page.path
        if ".." in target.parts:
            return "it leads out of the site"
        file = self.folder / target
        if file.is_dir():
            target = target / "index.html"
            file = self.folder / target
        if not file.is_file():
            return "no such page or file"
        if anchor and target in self.pages and unquote(anchor) not in self.pages[target].ids:
            return f"{target.as_posix()} has no anchor #{unquote(anchor)}"
        return ""


def _normal(parts: tuple[str, ...]) -> list[str]:
    out: list[str] = []
    for part in parts:
        if part == ".." and out and out[-1] != "..":
            out.pop()
        elif part != ".":
            out.append(part)
    return out
