"""Rows of a plan: memory arithmetic of one model on one machine, predicted before anything ran."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, register

Group = Literal["plan", "memory", "ledger", "term", "sweep", "assumed", "finding"]


class Plan(Row):
    """One number of a plan, or one text (an assumption, a finding).

    `group` says of what: `plan` a field by name, `memory` a stretch of a memory (`of` names it),
    `ledger` a role's GiB (`of` is its dtype), `term` a part of the decode step (`of` is the memory
    it is read from), `sweep` a field of the same plan at a hot budget of `at` GiB.
    """

    group: Group
    name: str
    value: float | None = None
    unit: str | None = None
    of: str | None = None
    at: float | None = None
    formula: str | None = None
    text: str | None = None


register("plan", 1, Plan, "memory arithmetic: what fits where, and what the bytes allow")
