"""`feed.xml`: the posts as RSS, dated by their receipts.

Written here for both renderers, so that both feeds are the same and no build clock enters.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime
from xml.sax.saxutils import escape

from lanelab.publish.site.config import SiteFolders
from lanelab.publish.site.source import read_page


def write(folders: SiteFolders, days: dict[str, str], url: str) -> None:
    """Write the feed of the published posts; `days` has each campaign's newest receipt."""
    config = folders.project()["website"]
    items = []
    for name, day in days.items():
        for stem in ("index", "companion"):
            path = folders.source / "posts" / name / f"{stem}.qmd"
            if path.is_file() and not (page := read_page(path)).draft:
                items.append(_item(f"{url}/posts/{name}/{stem}.html", page.front, day))
    title, about = escape(str(config.get("title", "Lane Lab"))), escape(str(config.get("description", "")))
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">\n<channel>\n'
        f"<title>{title}</title>\n<link>{escape(url)}/</link>\n<description>{about}</description>\n"
        f'<atom:link href="{escape(url)}/feed.xml" rel="self" type="application/rss+xml"/>\n'
        + "".join(items)
        + "</channel>\n</rss>\n"
    )
    (folders.built / "feed.xml").write_text(text, encoding="utf-8")


def settle_sitemap(folders: SiteFolders, day: str) -> None:
    """Date every page of the sitemap by the newest receipt; both renderers take the files' own times."""
    path = folders.built / "sitemap.xml"
    if path.is_file():
        text = re.sub(r"<lastmod>[^<]*</lastmod>", f"<lastmod>{day}</lastmod>", path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")


def _item(link: str, front: dict[str, object], newest: str) -> str:
    moment = datetime.fromisoformat(str(front.get("date") or newest)).replace(tzinfo=UTC)
    date = f"<pubDate>{format_datetime(moment)}</pubDate>\n"
    about = " ".join(str(front.get("description") or "").split())
    return (
        f"<item>\n<title>{escape(str(front.get('title', link)))}</title>\n<link>{escape(link)}</link>\n"
        f"<guid>{escape(link)}</guid>\n<description>{escape(about)}</description>\n{date}</item>\n"
    )
