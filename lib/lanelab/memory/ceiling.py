"""The decode ceiling: how long one step must take if it only moved bytes.

A step of C streams reads, for each MoE layer, the experts that its tokens picked: hot ones from HBM,
cold ones over the link; and once each, all weights that every token uses, and the KV cache of each
stream. A term is bytes over bandwidth. The engine's stock path runs the terms one after another, so
the ceiling is C over their sum; a kernel that reads both memories at once is bound by the larger
side (`overlapped`). Compute, launches and communication are left out: measured speed lies below.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanelab.memory.units import GIB


@dataclass(frozen=True)
class Term:
    """One part of a step: bytes over bandwidth."""

    name: str
    memory: str  # hbm | link | host
    gib: float
    gib_s: float | None
    formula: str

    @property
    def ms(self) -> float | None:
        """Milliseconds; None where the bandwidth is unknown, 0 where nothing is read."""
        if self.gib == 0:
            return 0.0
        return self.gib / self.gib_s * 1e3 if self.gib_s else None


@dataclass(frozen=True)
class Ceiling:
    """Terms of one step of `streams` streams, and the speeds they allow."""

    terms: tuple[Term, ...]
    streams: int

    @property
    def step_ms(self) -> float | None:
        """The terms one after another; None if one is unknown."""
        times = [term.ms for term in self.terms]
        return None if any(time is None for time in times) else sum(time for time in times if time is not None)

    @property
    def tok_s(self) -> float | None:
        """All streams together, terms one after another."""
        step = self.step_ms
        return self.streams * 1e3 / step if step else None

    @property
    def overlapped_tok_s(self) -> float | None:
        """All streams together, if link and local memory are read at the same time."""
        if self.step_ms is None:
            return None
        link = sum(term.ms or 0.0 for term in self.terms if term.memory == "link")
        local = self.step_ms - link
        longest = max(link, local)
        return self.streams * 1e3 / longest if longest else None


@dataclass(frozen=True)
class Step:
    """What one decode step reads. Cells are expected numbers; bytes are whole."""

    streams: int
    cells: float
    coverage: float  # share of the cells read that are hot
    cell_weight_bytes: int
    cell_scale_bytes: int
    scales_in_hbm: bool
    nonexpert_bytes: int
    kv_bytes: int

    def cold_gib(self) -> float:
        """GiB over the link."""
        size = self.cell_weight_bytes + (0 if self.scales_in_hbm else self.cell_scale_bytes)
        return self.cells * (1 - self.coverage) * size / GIB

    def hot_gib(self) -> float:
        """GiB of expert weights, and of the scales that live beside them, from HBM."""
        scales = self.cells if self.scales_in_hbm else self.cells * self.coverage
        return (self.cells * self.coverage * self.cell_weight_bytes + scales * self.cell_scale_bytes) / GIB


def ceiling(step: Step, *, local: str, local_gib_s: float | None, link_gib_s: float | None) -> Ceiling:
    """The terms of a step. `local` is the memory that holds the model: `hbm`, or `host` without one."""
    terms = [
        Term(
            "cold experts",
            "link",
            step.cold_gib(),
            link_gib_s,
            "cells read × (1 − coverage) × cold bytes a cell / link",
        ),
        Term(
            "hot experts", local, step.hot_gib(), local_gib_s, f"(cells read × coverage × weights + scales) / {local}"
        ),
        Term(
            "non-expert weights", local, step.nonexpert_bytes / GIB, local_gib_s, f"all that every token uses / {local}"
        ),
        Term(
            "KV cache", local, step.kv_bytes / GIB, local_gib_s, f"streams × KV read at the depth asked for / {local}"
        ),
    ]
    return Ceiling(tuple(terms), step.streams)
