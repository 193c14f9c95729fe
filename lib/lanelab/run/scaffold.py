"""`campaign new`: the files of a campaign and its two posts, ready to be filled in."""

from __future__ import annotations

from pathlib import Path

from lanelab import campaign as campaigns
from lanelab import lane as lanes
from lanelab import paths
from lanelab.errors import LabError
from lanelab.publish import scaffold as post_sources
from lanelab.receipts.files import write_atomic
from lanelab.run.source import steps

PLAN = """\
# The plan: what is measured, on what. See site/docs/formats.md.
name: {name}
title: {title}
model: {model}
machine: {machine}
lane: {lane}
steps:
{steps}"""
CLAIMS = """\
# Hypotheses with their evidence (facts or receipt ids) and state: open, supported, disproved, parked. An example:
# bandwidth-bound:
#   says: "Decode is bound by memory bandwidth."
#   state: open
#   evidence: [decode_tok_s]
"""
CORRECTIONS = """\
# Dated, public changes of earlier claims; the old value stays visible. An example:
# decode-8k:
#   date: 2026-01-31
#   was: "The old sentence."
#   now: "The new one, with a {fact}."
#   why: "What was wrong."
"""


class Exists(LabError):
    """A campaign or post of that name exists and is not overwritten. Data: `path`."""


def new(
    name: str, *, title: str | None = None, model: str | None = None, machine: str = "here", lane: str = "mini"
) -> list[Path]:
    """Write the campaign's folder and posts; returns the files. Raises `BadName`, `Exists`, `NoSpace`.

    Every step notebook that the lab has is put into the plan. Raises `UnknownLane` for a lane that is
    neither a file of data/lanes nor a URL.
    """
    folder = campaigns.folder(campaigns.check_name(name))
    lanes.load(lane)
    posts = paths.root() / "site" / "posts" / name
    for path in (folder, posts):
        if path.exists():
            raise Exists(f"{path} exists already and is not overwritten; choose another name", path=str(path))
    plan = {
        "name": name, "title": _quoted(title or name), "model": model or "null", "machine": machine, "lane": lane,
        "steps": "".join(f"  - step: {step}\n" for step in steps()) or "  []\n",
    }  # fmt: skip
    files = {
        folder / "campaign.yaml": PLAN.format(**plan),
        folder / "facts.yaml": post_sources.facts_text(),
        folder / "claims.yaml": CLAIMS,
        folder / "corrections.yaml": CORRECTIONS,
    }
    for path, text in files.items():
        write_atomic(path, text.encode())
    return [*files, *post_sources.write(campaigns.load(name))]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
