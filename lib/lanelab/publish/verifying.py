"""What `lanelab verify` asks of this room: that a campaign's facts, claims and corrections can be told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lanelab.errors import BadFile, LabError
from lanelab.publish import register
from lanelab.publish.facts import Facts, NothingMeasured
from lanelab.publish.reader import Reader
from lanelab.receipts.verify import Problem


def problems(campaign_dir: Path) -> Iterator[Problem]:
    """Each fact, claim and correction that cannot be told; a fact without rows yet is a note."""
    try:
        facts = Facts(campaign_dir, Reader(campaign_dir), strict=True)
    except BadFile as error:
        yield Problem(campaign_dir / "facts.yaml", "facts", str(error))
        return
    for name in facts:
        try:
            _ = facts[name]
        except NothingMeasured as error:
            yield Problem(facts.path, "facts", str(error), "note")
        except LabError as error:
            yield Problem(facts.path, "facts", str(error))
    draft = Facts(campaign_dir, facts.reader)
    for tell in (partial(register.claims_table), partial(register.corrections_table, reader=draft.reader)):
        try:
            tell(campaign_dir, draft, site=True)
        except LabError as error:
            yield Problem(campaign_dir, "register", str(error))
