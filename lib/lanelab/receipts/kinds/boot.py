"""Rows of a boot: one attempt to bring a recipe up. A failed boot is a row too; what is not known stays null."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register

Outcome = Literal[
    "serving", "bad_flag", "bad_config", "oom_device", "oom_host_killed", "kv_too_small", "weights_missing",
    "port_in_use", "died_after_ready", "hung", "garbage", "unknown",
]  # fmt: skip


class Boot(Row):
    """What one boot was asked for and what came of it.

    `outcome` is the lab's class (`serving` says only that it came up and did not fail; `garbage` that it
    serves and its output is not sane), `outcome_said` the words of whoever reported it.
    """

    version: str
    ordinal: int = measured_in("1", says="place in the campaign, from 0")
    when_said: str | None = None
    change: str | None = None
    load_format: str | None = None
    moe_backend: str | None = None
    patches: str | None = None
    offload_gb: float | None = measured_in("GB", None, says="requested host offload, as the flag counts it")
    hot_gib: float | None = measured_in("GiB", None, says="requested weights of the hot bank, scales not counted")
    max_model_len: int | None = measured_in("tokens", None)
    outcome: Outcome | None = None
    outcome_said: str | None = None
    reason: str | None = None
    weights_s: float | None = measured_in("s", None, says="loading weights took")
    model_load_s: float | None = measured_in("s", None, says="model loading took")
    model_load_gib: float | None = measured_in("GiB", None, says="model loading took")
    offloaded_gib: float | None = measured_in("GiB", None, says="engaged offload, as logged")
    kv_gib: float | None = measured_in("GiB", None)
    kv_tokens: int | None = measured_in("tokens", None)
    max_concurrency: float | None = measured_in("1", None, says="requests of max_model_len that the KV pool holds")
    split_s: float | None = measured_in("s", None, says="moving the experts to their banks")
    hbm_free_gib: float | None = measured_in("GiB", None, says="after the split")
    host_avail_gib: float | None = measured_in("GiB", None, says="after the split")
    log: str | None = None  # where the boot's log stands, if it was kept


register("boot", 1, Boot, "attempts to bring a recipe up, and what came of each")
