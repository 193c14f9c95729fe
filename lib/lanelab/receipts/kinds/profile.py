"""Rows of a profile: time by operator or kernel, as a trace's table gives it."""

from __future__ import annotations

from lanelab.receipts.kinds import Row, measured_in, register


class Profile(Row):
    """One line of a profiler table. Spans and operators contain kernels: the lines do not add up."""

    name: str
    category: str
    calls: int = measured_in("calls")
    self_cuda_us: float | None = measured_in("us", None)
    self_cuda_pct: float | None = measured_in("%", None)
    cuda_total_us: float | None = measured_in("us", None)
    cuda_avg_us: float | None = measured_in("us", None)
    self_cpu_us: float | None = measured_in("us", None)
    cpu_total_us: float | None = measured_in("us", None)


register("profile", 1, Profile, "time by operator and kernel")
