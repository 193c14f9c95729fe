"""Memory arithmetic: what fits where, and what the bytes allow. Pure functions, no I/O; all predicted."""

from lanelab.memory.findings import Finding
from lanelab.memory.plan import Options, Plan, plan, saved_by
from lanelab.memory.tables import ledger_rows, memory_parts, sweep

__all__ = ["Finding", "Options", "Plan", "ledger_rows", "memory_parts", "plan", "saved_by", "sweep"]
