"""The two posts of a new campaign: a parent and its companion, from templates.

A template holds no number: figures and tables come from the step notebooks, everything else from the
campaign's files. What it cannot know (the answer) it asks for, and the post is a draft until then.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from lanelab import campaign as campaigns
from lanelab import paths
from lanelab.campaign import Campaign
from lanelab.receipts.files import write_atomic

# step: (cells shown to all, cells of the parent post only)
SHOWN = {
    "01-memory-arithmetic": ("## What fits where", ("fig-memory",), ("tbl-plan", "fig-tradeoff", "tbl-findings")),
    "04-decode": ("## Decode and the knee", ("fig-decode", "fig-knee"), ("tbl-decode", "tbl-knee")),
}


def texts(campaign: Campaign, *, draft: bool = True) -> dict[str, str]:
    """`index.qmd` and `companion.qmd` of a campaign as texts."""
    words = {
        "NAME": campaign.name,
        "TITLE": _quoted(campaign.title),
        "COMPANION_TITLE": _quoted(f"{campaign.title}, in plain words"),
        "DRAFT": "draft: true\n" if draft else "",
        "PARENT_STEPS": _steps(campaign, parent=True),
        "COMPANION_STEPS": _steps(campaign, parent=False),
    }
    return {
        f"{stem}.qmd": _filled(
            resources.files("lanelab.publish").joinpath("templates", f"{stem}.qmd").read_text(), words
        )
        for stem in ("index", "companion")
    }


def facts_text() -> str:
    """The facts.yaml of a new campaign: what decode and the knee will have measured, named."""
    return resources.files("lanelab.publish").joinpath("templates", "facts.yaml").read_text()


def write(campaign: Campaign | str, *, draft: bool | None = None) -> list[Path]:
    """Write the posts that do not exist yet under site/posts/<campaign>; returns those written.

    `here` is never a draft: it shows what was measured and claims nothing. (The build retells `mini`'s
    posts for `here`; this is for whoever wants to start from the template.) Raises `NotFound`, `BadFile`, `NoSpace`.
    """
    plan = campaigns.load(campaign) if isinstance(campaign, str) else campaign
    unfinished = plan.name != campaigns.HERE if draft is None else draft
    made = []
    for name, text in texts(plan, draft=unfinished).items():
        path = paths.root() / "site" / "posts" / plan.name / name
        if not path.exists():
            write_atomic(path, text.encode())
            made.append(path)
    return made


def _steps(campaign: Campaign, *, parent: bool) -> str:
    parts = []
    for step in dict.fromkeys(step.step for step in campaign.steps):
        if step in SHOWN:
            heading, both, more = SHOWN[step]
            file = f"../../notebooks-out/{campaign.name}/{step}.ipynb"
            cells = [f"{{{{< embed {file}#{label} >}}}}" for label in (*both, *(more if parent else ()))]
            parts += [heading, *cells]
    return "\n\n".join(parts)


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@@{word}@@", value)
    return text


def _quoted(text: str) -> str:
    return '"' + " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"') + '"'
