"""What a notebook imports: open the book of a campaign, measure, show, say.

    from lanelab import notebook as lab
    book = lab.open(campaign, step="04-decode", lane=lane, measure=measure)
    book.measure("decode", preset=preset)     # one call; skipped when measure is False
    book.figure_decode()                      # from receipts only
    book.say("Decode runs at {decode_tok_s}.")

The same notebook runs in JupyterLab, under papermill and when the site is built (`measure=False`):
the parameters decide. Only the site's build sets `LANELAB_SITE`, and then every number is a link to its
receipt's page and data lines link to files of the site; elsewhere such links would lead nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lanelab import campaign as campaigns
from lanelab.errors import NotFound
from lanelab.publish import exhibit, register, shown
from lanelab.publish.facts import Facts
from lanelab.publish.reader import Reader
from lanelab.publish.say import said
from lanelab.receipts import Receipt

SITE = "LANELAB_SITE"


class Book:
    """One step of one campaign, open in a notebook."""

    def __init__(self, campaign_dir: Path, *, step: str | None, lane: str | None, measure: bool) -> None:
        self.dir = campaign_dir
        self.campaign = campaign_dir.name
        self.step = step
        self.lane = lane
        self.measuring = measure
        self.for_site = os.environ.get(SITE) == "1"

    def __repr__(self) -> str:
        mode = "measures" if self.measuring else "shows receipts only"
        return f"{self.campaign}, step {self.step or '–'}, lane {self.lane or '–'}: {mode}"

    @cached_property
    def reader(self) -> Reader:
        """The campaign's receipts; after a measurement they are read anew."""
        run = os.environ.get("LANELAB_RUN") if self.measuring else None
        return Reader(self.dir, current_run=run, public_only=not self.measuring)

    def measure(self, workload: str, *, preset: str | None = None, **parameters: Any) -> Receipt | None:
        """Run one workload on the lane and keep its receipt; does nothing when the book only shows.

        Rows of an interrupted run of the same measurement are kept and the rest is measured. Raises
        `LabError` for an unknown workload, preset or parameter, and when the lane is down.
        """
        if not self.measuring:
            return None
        from lanelab import measure

        if self.lane is None:
            raise NotFound("lane", "none given", hint="open the book with lane=…")
        self.dir.mkdir(parents=True, exist_ok=True)
        receipt: Receipt = measure.run(
            workload, campaign_dir=self.dir, campaign=self.campaign, lane=self.lane, preset=preset,
            parameters=parameters or None, resume=True, step=self.step, run=os.environ.get("LANELAB_RUN"),
            run_dir=Path(given) if (given := os.environ.get("LANELAB_RUN_DIR")) else None,
        )  # fmt: skip
        self.refresh()
        return receipt

    def plan(self, model: str, machine: str, **options: Any) -> Receipt | None:
        """Keep the memory arithmetic of a model on a machine as a receipt; does nothing when the book only shows.

        Nothing is measured: the receipt's origin is `predicted`. `options` are those of
        `lanelab.planning.record_plan`. Raises `LabError` for an unknown model, machine or option.
        """
        if not self.measuring:
            return None
        from lanelab import planning

        self.dir.mkdir(parents=True, exist_ok=True)
        receipt = planning.record_plan(self.dir, self.campaign, model, machine, step=self.step, **options)
        self.refresh()
        return receipt

    def refresh(self) -> None:
        """Read receipts and facts anew."""
        for name in ("reader", "facts"):
            self.__dict__.pop(name, None)

    @cached_property
    def facts(self) -> Facts:
        """The campaign's facts; those without rows say so."""
        return Facts(self.dir, self.reader)

    def say(self, text: str) -> None:
        """Show a sentence whose `{fact}` places become numbers linked to their receipts.

        Raises `LooseDigit` for a number that is typed, `NotFound` for a fact that facts.yaml lacks.
        """
        shown.sentence(said(text, self.facts, site=self.for_site)).display()

    def figure(self, name: str) -> None:
        """Show a figure by name, with its data and the command that measures it again."""
        made = exhibit.figure_named(name)
        for part in shown.figure(made, self.reader, lane=self.lane, site=self.for_site):
            part.display()

    def table(self, name: str) -> None:
        """Show a table by name, with its data and the command that measures it again."""
        made = exhibit.table_named(name)
        for part in shown.table(made, self.reader, lane=self.lane, site=self.for_site):
            part.display()

    def __getattr__(self, name: str) -> Callable[[], None]:
        """`figure_knee()` is `figure("knee")`, `table_boots()` is `table("boots")`, for every exhibit there is."""
        kind, _, which = name.partition("_")
        if kind == "figure":
            return partial(self.figure, exhibit.figure_named(which.replace("_", "-")).name)
        if kind == "table":
            return partial(self.table, exhibit.table_named(which.replace("_", "-")).name)
        raise AttributeError(f"a book has no {name!r}")

    def __dir__(self) -> list[str]:
        """With the exhibits, so that they complete in JupyterLab."""
        exhibit.load_all()
        shows = [f"figure_{name}" for name in exhibit.FIGURES] + [f"table_{name}" for name in exhibit.TABLES]
        return sorted([*super().__dir__(), *(name.replace("-", "_") for name in shows)])

    def table_claims(self) -> None:
        """Claims with their states and evidence, from claims.yaml."""
        text = register.claims_table(self.dir, self.facts, site=self.for_site)
        shown.sentence(text or "*No claims are written down yet.*").display()

    def table_corrections(self) -> None:
        """What was taken back, when and why; the old value stays visible."""
        text = register.corrections_table(self.dir, self.facts, self.reader, site=self.for_site)
        shown.sentence(text or "*Nothing has been corrected so far.*").display()


def open(
    campaign: str = campaigns.HERE, *, step: str | None = None, lane: str | None = None, measure: bool = True
) -> Book:
    """The book of a campaign's step. Raises `NotFound` for a campaign that does not exist in publish mode.

    `here` needs no plan: measuring makes its folder.
    """
    folder = campaigns.folder(campaign)
    if not folder.is_dir() and not (measure and campaign == campaigns.HERE):
        campaigns.load(campaign)
    return Book(folder, step=step, lane=lane, measure=measure)
