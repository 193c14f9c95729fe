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
_FRAME_TAGS = {"script", "style", "template", "nav"}
_FRAME_CLASSES = {
    "code-copy-button",
    "callout-icon-container",
    "header-section-number",
    "footnote-ref",
    "footnote-backref",
    "footnote-back",
}
_DASHES = str.maketrans(
    {"—": "-", "–": "-", "‑": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "…": "...", "\u00ad": ""}
)


def squeezed(text: str) -> str:
    """Text for comparing: no white space, plain quotes and dashes, so that layout does not matter."""
    plain = re.sub(r"[\s\u200b\u2060\ufeff]+", "", text.translate(_DASHES))
    return re.sub(r"-{2,}", "-", plain)


@dataclass(frozen=True)
class Address:
    """An address that a page names; `loads` if the page cannot be shown without it."""

    address: str
    line: int
    loads: bool


@dataclass(frozen=True)
class Picture:
    """A picture and what it says to those who do not see it."""

    name: str
    line: int
    says: str


@dataclass(frozen=True)
class Reading:
    """All that is read off one page, in one pass."""

    ids: set[str]
    addresses: list[Address]
    pictures: list[Picture]
    errors: list[int]  # lines of cells' error outputs
    headings: list[str]  # the title first
    captions: list[str]
    words: str  # all that the page says, squeezed
    prose: str  # the same without code, as it stands


@dataclass
class BuiltPage:
    """One built page; `path` is relative to the site."""

    path: Path
    text: str

    @cached_property
    def reading(self) -> Reading:
        """The page as it was read."""
        soup = BeautifulSoup(self.text, "html.parser")
        ids = {str(tag["id"]) for tag in soup.find_all(id=True)}
        ids |= {str(tag["name"]) for tag in soup.find_all("a", attrs={"name": True})}
        addresses, pictures = _addresses(soup), _pictures(soup)
        errors = [tag.sourceline or 0 for tag in soup.find_all(class_="cell-output-error")]
        main = soup.find("main") or soup.find("body") or soup
        assert isinstance(main, Tag)
        for part in main.find_all(_is_frame):
            part.decompose()
        headings = [" ".join(tag.get_text().split()) for tag in main.find_all(_HEADINGS)]
        captions = [
            " ".join(tag.get_text().replace("\u00a0", " ").split()) for tag in main.find_all(["figcaption", "caption"])
        ]
        words = squeezed(main.get_text(" "))
        for part in main.find_all(["code", "pre"]):
            part.decompose()
        return Reading(ids, addresses, pictures, errors, headings, captions, words, main.get_text(" "))


_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]


def _is_frame(tag: Tag) -> bool:
    return tag.name in _FRAME_TAGS or not _FRAME_CLASSES.isdisjoint(tag.get("class") or ())


def _addresses(soup: BeautifulSoup) -> list[Address]:
    found = []
    for tag in soup.find_all(["a", "area", "link", "img", "script", "source", "iframe", "video", "audio"]):
        line = tag.sourceline or 0
        if tag.name in ("a", "area"):
            if tag.get("href"):
                found.append(Address(str(tag["href"]), line, False))
        elif tag.name == "link":
            rels = set(tag.get("rel") or [])
            if tag.get("href") and rels & {"stylesheet", "icon", "preload", "modulepreload", "alternate"}:
                found.append(Address(str(tag["href"]), line, "alternate" not in rels))
        elif tag.get("src"):
            found.append(Address(str(tag["src"]), line, True))
    return found


def _pictures(soup: BeautifulSoup) -> list[Picture]:
    found = [
        Picture(str(tag.get("src")), tag.sourceline or 0, str(tag.get("alt") or "").strip())
        for tag in soup.find_all("img")
    ]
    for tag in soup.find_all("svg"):
        if tag.find_parent("main"):
            title = tag.find("title")
            says = str(tag.get("aria-label") or (title.get_text() if title else "") or tag.get("aria-hidden") or "")
            found.append(Picture("an inline picture", tag.sourceline or 0, says.strip()))
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
        if anchor and target in self.pages and unquote(anchor) not in self.pages[target].reading.ids:
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
