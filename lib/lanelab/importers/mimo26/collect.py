"""All receipts of the campaign, and writing them: what exists is compared, never touched."""

from __future__ import annotations

from pathlib import Path

from lanelab.errors import LabError
from lanelab.importers.mimo26 import bench, boots, derived, figures, pictures, quality, routing
from lanelab.importers.mimo26.source import PublishedFolder
from lanelab.receipts import Receipt, Store
from lanelab.receipts.canonical import canonical_bytes
from lanelab.receipts.redact import redact
from lanelab.receipts.store import checked


class Differs(LabError):
    """A receipt that exists says something else than the source does now. Data: `id`."""


def collect(folder: Path) -> list[Receipt]:
    """Every receipt that the folder of published figures gives, in a fixed order. Raises `BadFile`."""
    source = PublishedFolder(folder)
    makers = (
        bench.decode, bench.knee, bench.agent, bench.needles, boots.boots, boots.budgets,
        routing.routing_counts, routing.coverage, quality.teacher_forced, quality.greedy, quality.suites,
        quality.profile, figures.recipe_facts, figures.post_facts, figures.medians, figures.tables, pictures.footprint, pictures.parity, derived.derived,
    )  # fmt: skip
    made = [receipt for maker in makers for receipt in maker(source)]
    ids = [receipt.id for receipt in made]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise Differs(f"two receipts would have the id {twice[0]}", id=twice[0])
    return made


def import_into(folder: Path, campaign_dir: Path) -> tuple[list[str], list[str]]:
    """Write what is missing; returns ids written and ids that stood already.

    Raises `Differs` if a standing receipt's rows are not those of the source: receipts are never edited, so the
    answer is a new campaign folder or a retraction.
    """
    store = Store(campaign_dir)
    written, stood = [], []
    for receipt in collect(folder):
        path = store.path_of(receipt)
        if not path.exists():
            store.write(receipt)
            written.append(receipt.id)
            continue
        stored = store.read(receipt.id)
        if not _same(store, stored, receipt):
            raise Differs(f"receipt {receipt.id} exists and differs from {folder}", id=receipt.id)
        stood.append(receipt.id)
    return written, stood


def _same(store: Store, stored: Receipt, made: Receipt) -> bool:
    ready = redact(checked(made))
    return _without_rows(stored) == _without_rows(ready) and store.rows(stored) == store.rows(ready)


def _without_rows(receipt: Receipt) -> bytes:
    return canonical_bytes({key: value for key, value in receipt.body().items() if key not in ("rows", "digest")})
