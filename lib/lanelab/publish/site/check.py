"""The gate: what may not be published, each finding one line that names file and line.

Sources are read for digits that are no facts, references to nothing and code that would have to run;
executed notebooks for errors; built pages for literal shortcodes, pictures without words, dead links
and addresses elsewhere; every published file for private receipts and secrets; receipts for their
digests; and every page is held to what `expect` derives from its source.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lanelab.errors import LabError
from lanelab.publish.prose import loose_digits
from lanelab.publish.site import cells, expect, includes
from lanelab.publish.site.build import choose
from lanelab.publish.site.built import Address, BuiltPage, BuiltSite
from lanelab.publish.site.config import SiteFolders
from lanelab.publish.site.preprocess import VARIABLE, lookup, read_variables
from lanelab.publish.site.source import Page, lines_outside_code, pieces, read_page, source_pages
from lanelab.receipts import Store, read_receipt
from lanelab.receipts import verify as verification
from lanelab.receipts.redact import redact_text

MOST_DIFFERENCES = 5  # a page that was not built again differs everywhere
_GENERATED = ("receipts", "notebooks-out")  # pages made from receipts and notebooks, checked where they come from
# front matter that sets something up; every other field is read, since a template may show it
_SETTINGS = {
    "date", "date-modified", "date-format", "version", "draft", "format", "image", "image-width", "image-height", "css",
    "theme", "aliases", "lang", "engine", "jupyter", "execute", "order", "toc", "toc-depth", "number-sections",
    "number-depth", "resources", "bibliography", "csl", "filters", "page-layout", "sidebar", "search", "id", "slug",
}  # fmt: skip
_SHORTCODE = re.compile(r"\{\{<[^>]*>\}\}")
_INCLUDE = re.compile(r"(?<!\{)\{\{<\s*include\s+[\"']?([^\s\"'>]+)")
_PYTHON = re.compile(r"\{python\}")
_UNRESOLVED = re.compile(r"\?(?:@|var:|meta:)[\w.-]+")
_TEXT_FILES = {".html", ".json", ".csv", ".xml", ".txt", ".ipynb", ".svg", ".md", ".js", ".css", ".yml", ".yaml"}
_REFERENCE = re.compile(r"(?<![\w@\\?/.])-?@((?:fig|tbl|sec|eq|lst)-[A-Za-z0-9][\w-]*)")


class NotBuilt(LabError):
    """There is no built site to check."""


@dataclass(frozen=True)
class Finding:
    """One thing that stops (`error`) or should be looked at (`warning`)."""

    rule: str
    file: str
    line: int
    message: str
    severity: str = "error"

    def text(self) -> str:
        """`site/posts/x.qmd:12: digit: …`."""
        note = " (draft: a warning)" if self.severity == "warning" else ""
        return f"{self.file}:{self.line}: {self.rule}: {self.message}{note}"

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def check(lab: Path) -> list[Finding]:
    """Everything that is wrong with a lab's built site. Raises `NotBuilt`, `BadFile`."""
    folders = SiteFolders(lab)
    if not (folders.built / "index.html").is_file():
        raise NotBuilt(f"no built site at {folders.built}; `lanelab site build` makes it")
    published, _ = choose(folders, folders.config())
    site = BuiltSite(folders.built)
    pages = [read_page(path) for path in source_pages(folders.source)]
    pages = [page for page in pages if _belongs(page.path.relative_to(folders.source), published)]
    variables = read_variables(folders.source)
    found: list[Finding] = []
    for page in pages:
        found += check_source(page, folders, variables)
        found += check_expected(page, folders, site)
    for name in published:
        for path in sorted((folders.notebooks / name).glob("*.ipynb")):
            found += check_notebook(path, folders)
    for built in site.pages.values():
        found += check_page(built, site, folders)
    found += check_private(folders, published)
    found += check_receipts(folders, published)
    return sorted(set(found), key=lambda one: (one.severity, one.file, one.line, one.rule))


def _belongs(path: Path, published: list[str]) -> bool:
    """Whether a page is part of this build: posts of campaigns that are not published are not."""
    return path.parts[0] != "posts" or len(path.parts) < 3 or path.parts[1] in published


def check_source(page: Page, folders: SiteFolders, variables: dict[str, Any]) -> Iterator[Finding]:
    """Digits, references and code in one source page."""
    file = _shown(page.path, folders)
    relative = page.path.relative_to(folders.source)
    if relative.parts[0] not in _GENERATED:
        severity = "warning" if page.draft else "error"
        yield from _digits(page, file, severity)
        yield from _front_digits(page, file, severity)
        for included in _written_includes(page, folders, {page.path.resolve()}):
            yield from _digits(included, _shown(included.path, folders), severity)
    labels = _labels(page, folders)
    for index, line, prose in lines_outside_code(page.body):
        number = page.first_line + index
        if not prose and re.match(r"\s*(`{3,}|~{3,})\s*\{(python|r|julia|ojs)\b", line):
            yield Finding("code", file, number, "an executable cell; nothing is executed while pages are rendered")
        for piece, is_prose in pieces(line) if prose else ():
            if _PYTHON.search(piece):
                yield Finding("python", file, number, "inline `{python}` stays literal; write a fact, {{< var … >}}")
            if not is_prose:
                continue
            for variable in VARIABLE.finditer(piece):
                if lookup(variables, variable[1]) is None:
                    yield Finding("fact", file, number, _no_fact(variable[1], variables))
            for reference in _REFERENCE.finditer(piece):
                if reference[1] not in labels:
                    valid = ", ".join(sorted(labels)) or "none on this page"
                    yield Finding("reference", file, number, f"@{reference[1]} refers to nothing (valid: {valid})")


def _no_fact(name: str, variables: dict[str, Any]) -> str:
    campaign, _, fact = name.partition(".")
    names = variables.get(campaign)
    near = difflib.get_close_matches(fact, names, n=1) if isinstance(names, dict) else []
    hint = f"; did you mean {campaign}.{near[0]}?" if near else ""
    return f"{name} is no fact of a published campaign{hint}"


def _digits(page: Page, file: str, severity: str) -> Iterator[Finding]:
    """Typed digits of a page's body; what people write takes facts from `var` only."""
    for digit in loose_digits("\n" * (page.first_line - 1) + page.body, facts=False):
        yield Finding("digit", file, digit.line, f"{digit.text!r} is {digit.message}", severity)


def _written_includes(page: Page, folders: SiteFolders, seen: set[Path]) -> Iterator[Page]:
    """The files that a page takes in, and those that they take in, unless the build made them."""
    for target in _INCLUDE.findall(page.body):
        path = (folders.source / target[1:] if target.startswith("/") else page.path.parent / target).resolve()
        if path in seen or not path.is_file() or _made(path, folders):
            continue
        seen.add(path)
        included = read_page(path)
        yield included
        yield from _written_includes(included, folders, seen)


def _made(path: Path, folders: SiteFolders) -> bool:
    source = folders.source.resolve()
    if not path.is_relative_to(source):
        return False
    relative = path.relative_to(source)
    return relative.parts[0] in _GENERATED or relative.as_posix() == includes.NAME


def _front_digits(page: Page, file: str, severity: str) -> Iterator[Finding]:
    lines = page.path.read_text(encoding="utf-8").splitlines()[: page.first_line - 1]
    for name, value in page.front.items():
        if name in _SETTINGS:
            continue
        for digit in (digit for text in _texts(value) for digit in loose_digits(text, facts=False)):
            line = next((n for n, text in enumerate(lines, 1) if text.startswith(f"{name}:")), 1)
            yield Finding("digit", file, line, f"{digit.text!r} in {name} is {digit.message}", severity)


def _texts(value: Any) -> Iterator[str]:
    """Every text and number in a field, however deep."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _labels(page: Page, folders: SiteFolders) -> set[str]:
    labels = set(re.findall(r"\{[^{}\n]*#((?:fig|tbl)-[\w-]+)[^{}\n]*\}", page.body))
    if page.front.get("number-sections") is True:
        labels |= set(re.findall(r"^#{1,6} .*\{[^{}\n]*#(sec-[\w-]+)", page.body, re.M))
    for path, name in re.findall(r"\{\{<\s*embed\s+([^\s#>]+)#([\w-]+)", page.body):
        notebook = page.path.parent / path
        if notebook.is_file():
            for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
                if name in (cells.label_of(cell), cell.get("id")) and cell.get("outputs"):
                    labels.add(cells.label_of(cell))
    return labels


def check_expected(page: Page, folders: SiteFolders, site: BuiltSite) -> Iterator[Finding]:
    """One built page against its source."""
    relative = page.path.relative_to(folders.source).with_suffix(".html")
    file = _shown(page.path, folders)
    if relative not in site.pages:
        yield Finding("page", file, 1, f"was not built: there is no {relative.as_posix()}; build the site again")
        return
    try:
        wanted = expect.expected(page.path, folders.source)
    except (OSError, ValueError, LookupError) as error:
        yield Finding("page", file, 1, f"takes in what cannot be read: {error}")
        return
    found = expect.differences(wanted, site.pages[relative])
    for difference in found[:MOST_DIFFERENCES]:
        yield Finding("page", file, difference.line, difference.message)
    if len(found) > MOST_DIFFERENCES:
        more = len(found) - MOST_DIFFERENCES
        yield Finding("page", file, 1, f"and {more} more; is the built site older than its source?")


def check_notebook(path: Path, folders: SiteFolders) -> Iterator[Finding]:
    """Errors in an executed notebook, digits in its text."""
    text = path.read_text(encoding="utf-8")
    source = folders.lab / "notebooks" / path.name
    source_text = source.read_text(encoding="utf-8") if source.is_file() else ""
    for cell in json.loads(text)["cells"]:
        name = cell.get("id", "")
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                line = _line_of(text, '"output_type": "error"')
                what = f"cell {name!r} ends in {output.get('ename')}: {output.get('evalue')}"
                yield Finding("error-output", _shown(path, folders), line, what)
        if cell["cell_type"] == "markdown":
            for digit in loose_digits(cells.text_of(cell["source"]), facts=False):
                line = _line_of(source_text, f'"id": "{name}"')
                yield Finding(
                    "digit", _shown(source, folders), line, f"{digit.text!r} in cell {name!r} is {digit.message}"
                )


def check_page(page: BuiltPage, site: BuiltSite, folders: SiteFolders) -> Iterator[Finding]:
    """One built page: what is left of the sources' syntax, pictures, links."""
    file = _shown(folders.built / page.path, folders)
    reading = page.reading
    for match in _SHORTCODE.finditer(reading.prose):
        yield _traced("shortcode", match[0], "a literal shortcode", page, folders)
    for match in _PYTHON.finditer(reading.prose):
        yield _traced("python", match[0], "a literal {python}", page, folders)
    for match in _UNRESOLVED.finditer(reading.prose):
        needle = match[0].split(":")[-1].lstrip("?")
        yield _traced("reference", needle, f"an unresolved reference, {match[0]}", page, folders)
    for line in reading.errors:
        yield Finding("error-output", file, line, "a cell's error stands on the page")
    for picture in reading.pictures:
        if not picture.says:
            yield Finding("alt", file, picture.line, f"{picture.name} has no alt text that states the finding")
    for address in reading.addresses:
        yield from _address(page, site, address, file)


def _address(page: BuiltPage, site: BuiltSite, named: Address, file: str) -> Iterator[Finding]:
    address, line = named.address, named.line
    if re.match(r"^(https?:)?//", address):
        if named.loads:
            yield Finding("elsewhere", file, line, f"the page loads {address}; everything it needs must be on the site")
    elif re.match(r"^(javascript|file):", address):
        yield Finding("link", file, line, f"{address[:60]} is no address")
    elif address and not re.match(r"^[a-zA-Z][\w+.-]*:", address) and (why := site.dead(page, address)):
        yield Finding("link", file, line, f"{address} is dead: {why}")


def _traced(rule: str, needle: str, what: str, page: BuiltPage, folders: SiteFolders) -> Finding:
    """A finding at the source line that holds the text, else at the built page's."""
    for suffix in (".qmd", ".md"):
        source = (folders.source / page.path).with_suffix(suffix)
        if source.is_file() and needle in (text := source.read_text(encoding="utf-8")):
            return Finding(
                rule, _shown(source, folders), _line_of(text, needle), what if needle in what else f"{what}: {needle}"
            )
    line = _line_of(page.text, needle)
    return Finding(
        rule, _shown(folders.built / page.path, folders), line, what if needle in what else f"{what}: {needle}"
    )


def check_private(folders: SiteFolders, published: list[str]) -> Iterator[Finding]:
    """Private receipts, secrets and paths of this machine in anything that would be published."""
    private = {
        path.stem
        for name in published
        for path in Store(folders.campaign(name)).paths()
        if read_receipt(path).visibility == "private"
    }
    known = re.compile("|".join(map(re.escape, sorted(private)))) if private else None
    home = str(folders.lab)
    for path in sorted(folders.built.rglob("*")):
        if not path.is_file() or "site_libs" in path.relative_to(folders.built).parts:
            continue
        file = _shown(path, folders)
        if path.stem in private:
            yield Finding("private", file, 1, f"the private receipt {path.stem} is published")
        if path.suffix not in _TEXT_FILES:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if known and (match := known.search(line)):
                yield Finding("private", file, number, f"names the private receipt {match[0]}")
            if home in line:
                yield Finding("private", file, number, "names a path of this machine")
            elif (clean := redact_text(line)) != line:
                yield Finding("secret", file, number, f"holds what must not be published: {_around(line, clean)}")


def _around(line: str, clean: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(line, clean, strict=False)) if a != b), 0)
    return repr(" ".join(clean[max(0, at - 25) : at + 20].split()))


def check_receipts(folders: SiteFolders, published: list[str]) -> Iterator[Finding]:
    """Every receipt's bytes, digest and schema."""
    for name in published:
        for problem in verification.campaign(folders.campaign(name), extra=False):
            if problem.severity == "error":
                yield Finding("receipt", _shown(problem.path, folders), 1, problem.message)


def _shown(path: Path, folders: SiteFolders) -> str:
    return path.relative_to(folders.lab).as_posix() if path.is_relative_to(folders.lab) else path.as_posix()


def _line_of(text: str, needle: str) -> int:
    at = text.find(needle)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
