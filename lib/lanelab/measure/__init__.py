"""Workloads: what is measured on a lane, and how its rows become a receipt.

`WORKLOADS` can be asked without a lane (versions, presets, parameters); `run` measures one and
writes its receipt.
"""

from __future__ import annotations

from lanelab.measure import decode, knee
from lanelab.measure.driver import LaneLost, NothingMeasured, run
from lanelab.measure.workload import Workload

WORKLOADS: dict[str, Workload] = {one.WORKLOAD.name: one.WORKLOAD for one in (decode, knee)}

__all__ = ["WORKLOADS", "LaneLost", "NothingMeasured", "Workload", "run"]
