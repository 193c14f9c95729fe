"""What posts include and nobody types: status line, claims, corrections, and the index's entries.

Written to `site/_generated/`, from receipts, claims.yaml and corrections.yaml. A post takes them in with
`{{< include /_generated/mini/status.md >}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from lanelab import campaign as campaigns
from lanelab import machine
from lanelab.errors import LabError
from lanelab.publish import facts as facts_module
from lanelab.publish import register
from lanelab.publish.generated import put
from lanelab.publish.ledger import date_of
from lanelab.publish.provenance import dates
from lanelab.publish.reader import Reader
from lanelab.publish.site.config import SiteConfig, SiteFolders
from lanelab.publish.site.source import read_page
from lanelab.receipts import Receipt, Store, read_receipt

FOLDER = "_generated"
_HEAD = "<!-- Made by `lanelab site build`; not edited by hand. -->\n\n"
_ORIGINS = ("measured", "published", "predicted", "derived")


def write(folders: SiteFolders, config: SiteConfig, published: list[str], skipped: dict[str, str]) -> None:
    """Write every include, and remove those of campaigns that are not published any more."""
    folder = folders.source / FOLDER
    kept = {put(folder / "campaigns.md", _HEAD + index(folders, config, published, skipped))}
    for name in published:
        campaign_dir = folders.campaign(name)
        receipts = public_receipts(campaign_dir)
        evaluated = facts_module.evaluate(campaign_dir, strict=name != campaigns.HERE)
        claims = register.claims_table(campaign_dir, evaluated)
        corrections = register.corrections_table(campaign_dir, evaluated, Reader(campaign_dir))
        for stem, text in (
            ("status", status(name, receipts)),
            ("claims", claims or "No claims are written down yet.\n"),
            ("corrections", corrections or "Nothing has been corrected so far.\n"),
        ):
            kept.add(put(folder / name / f"{stem}.md", _HEAD + text.rstrip("\n") + "\n"))
    for path in sorted(folder.rglob("*.md")):
        if path not in kept:
            path.unlink()


def public_receipts(campaign_dir: Path) -> list[Receipt]:
    """The receipts that the site may show."""
    found = map(read_receipt, Store(campaign_dir).paths())
    return [receipt for receipt in found if receipt.visibility == "public"]


def status(campaign: str, receipts: list[Receipt]) -> str:
    """One line: how the numbers came about, when, on what, on which lane, and the way to the receipts."""
    origins = {receipt.origin for receipt in receipts}
    badges = [f"[{origin}]{{.badge .{origin}}}" for origin in _ORIGINS if origin in origins]
    if any(receipt.labels.emulated for receipt in receipts):
        badges.append("[emulated]{.badge .emulated}")
    days = sorted({day for receipt in receipts if (day := date_of(receipt))})
    lanes = _each(receipt.lane for receipt in receipts)
    machines = [_machine(name) for name in _each(receipt.machine for receipt in receipts)]
    parts = [
        " ".join(badges),
        dates(days),
        "; ".join(machines),
        f"lane {', '.join(f'`{lane}`' for lane in lanes)}" if lanes else "no lane of ours",
        f"[{len(receipts)} receipts](/receipts/{campaign}/index.html)",
    ]
    return "::: {.status}\n" + " · ".join(part for part in parts if part) + "\n:::\n"


def _each(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name})


def _machine(name: str) -> str:
    try:
        return machine.load(name).title
    except LabError:
        return f"machine `{name}`"


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
