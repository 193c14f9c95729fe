"""The posts of `here`: those of `mini`, which has the same plan and facts, on another machine.

They are made again at each build as long as they carry the line that says so; whoever deletes that
line keeps a version of their own.
"""

from __future__ import annotations

import re

from lanelab.campaign import HERE
from lanelab.publish.generated import put
from lanelab.publish.site.config import SiteFolders

MODEL = "mini"
MADE = "<!-- Made from posts/mini by `lanelab site build`; delete this line to keep a version of your own. -->"
TITLES = {"index": "This machine", "companion": "This machine, in plain words"}


def write_posts(folders: SiteFolders) -> None:
    """Write the posts of `here` that nobody has taken over."""
    for stem, title in TITLES.items():
        source = folders.source / "posts" / MODEL / f"{stem}.qmd"
        target = folders.source / "posts" / HERE / f"{stem}.qmd"
        if source.is_file() and (not target.is_file() or MADE in target.read_text(encoding="utf-8")):
            put(target, retold(source.read_text(encoding="utf-8"), title))


def retold(text: str, title: str) -> str:
    """A post of `mini` about `here`: other facts, notebooks and receipts, the same words."""
    text = re.sub(rf"(\{{\{{<\s*var\s+){MODEL}\.", rf"\g<1>{HERE}.", text)
    text = re.sub(rf"(?<=[/(]){MODEL}(?=/)", HERE, text)
    text = re.sub(r"^title:.*$", f'title: "{title}"', text, count=1, flags=re.M)
    about = "The plan of the reference campaign, run on this machine."
    text = re.sub(r"^description:.*$", f'description: "{about}"', text, count=1, flags=re.M)
    text = re.sub(r"^date:.*\n", "", text, count=1, flags=re.M)
    head, fence, body = text.partition("\n---\n")
    return f"{head}{fence}\n{MADE}\n{body}" if fence else text
