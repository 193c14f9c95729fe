"""A number in a text is a link to its receipt, with a hover that says where it came from."""

from __future__ import annotations

import re

from lanelab.publish.facts import Fact
from lanelab.publish.ledger import Proof

RECEIPTS = "/receipts"  # where the receipts browser stands on the site
HOVER_QUERY = 200  # characters; the whole query stands on the facts page
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~^$#])")


def receipt_href(campaign: str, receipt_id: str) -> str:
    """The page of one receipt."""
    return f"{RECEIPTS}/{campaign}/{receipt_id}.html"


def fact_href(fact: Fact) -> str:
    """The receipt's page, or the fact's own entry where several receipts were read."""
    if len(fact.receipts) == 1:
        return receipt_href(fact.campaign, fact.receipts[0])
    return f"{RECEIPTS}/{fact.campaign}/facts.html#{anchor(fact.name)}"


def anchor(name: str) -> str:
    """The anchor of a fact on its campaign's facts page."""
    return "fact-" + name.replace("_", "-")


def hover(fact: Fact) -> str:
    """Origin, kind of emulation, receipt, digest, query and date in one line."""
    if not fact.receipts:
        return "nothing measured yet"
    many = len(fact.receipts) > 1
    parts = [
        fact.origin + (f" (from {', '.join(fact.origins)})" if [fact.origin] != fact.origins else ""),
        f"{fact.flag} by its source" if fact.flag in ("predicted", "derived", "corrected") else "",
        f"emulated: {fact.emulated}" if fact.emulated else "",
        f"{len(fact.receipts)} receipts, first {fact.receipts[0]}" if many else fact.receipts[0],
        short_digest(fact.digests[0]),
        _short(fact.query) + (f" (n = {fact.n})" if fact.n else ""),
        dates(fact.dates),
    ]
    return " · ".join(part for part in parts if part)


def _short(query: str) -> str:
    return query if len(query) <= HOVER_QUERY else query[: HOVER_QUERY - 1] + "…"


def short_digest(digest: str) -> str:
    """`sha256:` and twelve characters: enough to compare by eye; the whole stands on the receipt's page."""
    return digest[:19] + "…" if len(digest) > 19 else digest


def dates(found: list[str]) -> str:
    """One day, or the first and the last."""
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else ""


def classes(fact: Fact) -> list[str]:
    """CSS classes of a fact: its origin, and whether it is emulated or disputed."""
    if not fact.receipts:
        return ["fact", "missing"]
    marks = [("emulated", fact.emulated is not None), ("disputed", bool(fact.disputed))]
    return ["fact", fact.origin, *(name for name, holds in marks if holds)]


def fact_link(fact: Fact, *, site: bool = True) -> str:
    """The fact as Markdown: on the site a link with a hover; in JupyterLab the same without a page behind it."""
    if fact.disputed:
        return " against ".join(fact_link(side, site=site) for side in fact.disputed)
    attributes = "{" + " ".join("." + name for name in classes(fact)) + "}"
    if not site:
        return f'<span class="{" ".join(classes(fact))}" title="{html_title(hover(fact))}">{escaped(fact.text)}</span>'
    return f'[{escaped(fact.text)}]({fact_href(fact)} "{title(hover(fact))}"){attributes}'


def title(text: str) -> str:
    """A text that can stand between the quotes of a Markdown link's title, also inside a table."""
    clean = " ".join(text.split()).replace('"', "'").replace("\\", "/").replace("{{<", "{ {<").replace(">}}", ">} }")
    return clean.replace("|", "¦").replace("<", "‹").replace(">", "›").replace("`", "'")


def html_title(text: str) -> str:
    """The same for an HTML attribute."""
    return title(text).replace("&", "&amp;")


def escaped(text: str) -> str:
    """Text without Markdown in it."""
    return _SPECIAL.sub(r"\\\1", text)


def receipt_link(
    campaign: str, receipt_id: str, *, proof: Proof | None = None, text: str = "", site: bool = True
) -> str:
    """A receipt's short name as a link to its page."""
    shown = text or short_id(receipt_id)
    if not site:
        return f"`{receipt_id}`"
    about = f"{proof.origin} · {receipt_id} · {short_digest(proof.digest)} · {proof.date}" if proof else receipt_id
    return f'[`{shown}`]({receipt_href(campaign, receipt_id)} "{title(about)}")'


def short_id(receipt_id: str) -> str:
    """The end of an id: what tells receipts of one kind apart."""
    return receipt_id.rsplit("-", 1)[-1] if re.search(r"-\d{8}t\d{6}z-[0-9a-f]{8}$", receipt_id) else receipt_id
