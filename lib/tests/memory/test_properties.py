"""Laws of the arithmetic that hold for every model, machine and option."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab import memory
from lanelab.checkpoint import Attention, Facts, Shape, count
from lanelab.errors import UsageError
from lanelab.machine import Cpu, Figure, Gpu, Machine
from lanelab.memory import experts, host, kv
from lanelab.memory.units import GIB, power_of_two


def figure(value: float) -> Figure:
    return Figure(value=value, origin="nominal", source="test")


@st.composite
def models(draw: st.DrawFn) -> Facts:
    layers = draw(st.integers(1, 12))
    sliding = draw(st.integers(0, layers - 1))
    heads, experts_per_layer = draw(st.integers(1, 8)), draw(st.integers(1, 64))
    full = Attention(
        kind="full", layers=layers - sliding, heads=heads, kv_heads=1, k_dim=64, v_dim=draw(st.sampled_from([32, 64]))
    )
    attention = [full]
    if sliding:
        attention.append(
            full.model_copy(update={"kind": "sliding", "layers": sliding, "window": draw(st.integers(1, 512))})
        )
    shape = Shape(
        model_type="test", known=True, layers=layers, moe_layers=draw(st.integers(0, layers)), hidden=128, vocab=1000,
        max_context=draw(st.integers(1, 100_000)), attention=attention, dense_intermediate=256, experts=experts_per_layer,
        top_k=draw(st.integers(1, experts_per_layer)), expert_intermediate=draw(st.sampled_from([64, 512])),
    )  # fmt: skip
    stored = {"routed_experts": draw(st.sampled_from(["bf16", "mxfp4", "fp8", "nvfp4"]))}
    return Facts(name="test", title="test", shape=shape, ledger=count.ledger(shape, stored))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    gpus = []
    if draw(st.booleans()):
        gpus = [Gpu(name="gpu", hbm_gib=figure(draw(st.floats(0.01, 4))), hbm_gib_s=figure(1000))]
    return Machine(
        name="box", title="box", cpu=Cpu(model="cpu", arch="x86_64"), host_gib=figure(draw(st.floats(0.5, 64))),
        host_gib_s=figure(20), link_gib_s=figure(draw(st.floats(1, 500))), gpus=gpus,
    )  # fmt: skip


OPTIONS = st.builds(
    memory.Options,
    hot_gib=st.one_of(st.none(), st.floats(0, 4)),
    context=st.one_of(st.none(), st.integers(1, 200_000)),
    streams=st.integers(1, 64),
    utilisation=st.floats(0.1, 1),
    reserve_gib=st.one_of(st.none(), st.floats(0, 1)),
    coverage=st.one_of(st.none(), st.floats(0, 1)),
    depth=st.integers(0, 10_000),
    scales=st.sampled_from(["hbm", "cells"]),
)


@given(models(), machines(), OPTIONS)
def test_nothing_is_negative_and_hot_and_cold_are_all_cells(
    facts: Facts, box: Machine, options: memory.Options
) -> None:
    planned = memory.plan(facts, box, options)
    for name, value in planned.fields().items():
        if isinstance(value, (int, float)):
            assert value >= 0, name
    assert 0 <= planned.hot <= facts.cells
    assert planned.hot + planned.cold == facts.cells
    assert all(part.gib > 0 for part in memory.memory_parts(planned))


@given(models(), machines(), OPTIONS)
def test_parts_of_a_memory_add_up_to_it(facts: Facts, box: Machine, options: memory.Options) -> None:
    """A plan that fits accounts for every byte of local memory, neither more nor less."""
    planned = memory.plan(facts, box, options)
    local = sum(part.gib for part in memory.memory_parts(planned) if part.memory == planned.local)
    size = box.hbm_gib if planned.local == "hbm" else box.host_gib.value
    if planned.short_gib == 0:
        assert local == pytest.approx(size)
    if planned.verdict != "does_not_fit" and planned.local == "hbm":
        held = sum(part.gib for part in memory.memory_parts(planned) if part.memory == "host")
        assert held == pytest.approx(box.host_gib.value)


@given(models(), machines(), OPTIONS)
def test_verdict_and_errors_agree(facts: Facts, box: Machine, options: memory.Options) -> None:
    planned = memory.plan(facts, box, options)
    errors = [finding for finding in planned.findings if finding.severity == "error"]
    assert (planned.verdict == "does_not_fit") == bool(errors)
    assert all(finding.fix for finding in errors)


@given(models(), machines(), OPTIONS, st.floats(0, 2), st.floats(0, 2))
def test_more_hot_memory_means_fewer_cold_cells_less_cache_and_no_slower_a_ceiling(
    facts: Facts, box: Machine, options: memory.Options, one: float, more: float
) -> None:
    box = box.model_copy(update={"link_gib_s": figure(min(box.link_gib_s.value, 900))})  # slower than HBM
    options = replace(options, coverage=None)
    less_hot = memory.plan(facts, box, replace(options, hot_gib=one))
    more_hot = memory.plan(facts, box, replace(options, hot_gib=one + more))
    assert more_hot.hot >= less_hot.hot
    assert more_hot.kv_gib <= less_hot.kv_gib
    assert more_hot.host_pinned_gib <= less_hot.host_pinned_gib
    assert more_hot.fields()["context_max"] <= less_hot.fields()["context_max"]
    if less_hot.ceiling.tok_s:
        assert more_hot.ceiling.tok_s >= less_hot.ceiling.tok_s * (1 - 1e-9)


@given(models(), machines(), OPTIONS)
def test_the_default_hot_budget_is_the_largest_that_fits(facts: Facts, box: Machine, options: memory.Options) -> None:
    options = replace(options, hot_gib=None)
    planned = memory.plan(facts, box, options)
    if planned.local == "host" or planned.cold == 0 or planned.short_gib:
        return
    one_more = replace(options, hot_gib=(planned.hot + 1) * facts.cell_weight_bytes / GIB)
    assert memory.plan(facts, box, one_more).short_gib > 0


@given(models(), st.integers(1, 200_000), st.integers(1, 8), st.floats(0, 4))
def test_the_longest_context_fits_and_the_next_does_not(
    facts: Facts, context: int, streams: int, pool_gib: float
) -> None:
    cache, pool = kv.kv_cache(facts), pool_gib * GIB
    longest = cache.context_max(pool, streams, context)
    if longest:
        assert streams * cache.request_bytes(longest) <= pool
    if longest < context:
        assert streams * cache.request_bytes(longest + 1) > pool


@given(models(), st.floats(0, 8))
def test_offload_stops_at_the_first_parameter_past_its_budget(facts: Facts, budget_gib: float) -> None:
    moved = experts.offload_by_budget(facts, budget_gib)
    everything = facts.cells * facts.cell_weight_bytes
    largest = facts.cell_weight_bytes * facts.shape.experts if facts.cells else 0
    assert moved.bytes <= everything
    assert moved.bytes >= min(everything, budget_gib * GIB)
    assert moved.bytes < budget_gib * GIB + largest or moved.bytes == 0
    assert moved.bytes <= moved.pinned_power_of_two_bytes <= 2 * moved.bytes


@given(models(), st.data())
def test_rounding_to_powers_of_two_costs_less_than_double(facts: Facts, data: st.DataObject) -> None:
    hot = data.draw(st.integers(0, facts.cells))
    exact = (facts.cells - hot) * facts.cell_weight_bytes
    assert exact <= host.pinned_power_of_two(facts, hot) <= 2 * exact


@given(st.integers(1, 2**60))
def test_power_of_two(value: int) -> None:
    found = power_of_two(value)
    assert found & (found - 1) == 0
    assert found // 2 < value <= found


@given(st.integers(1, 512), st.data())
def test_touched_experts(number: int, data: st.DataObject) -> None:
    top_k, tokens = data.draw(st.integers(1, number)), data.draw(st.integers(1, 64))
    found = experts.distinct_experts(number, top_k, tokens)
    assert top_k - 1e-9 <= found <= min(number, top_k * tokens) + 1e-9


@pytest.mark.parametrize(
    "bad",
    [{"hot_gib": -1.0}, {"context": 0}, {"streams": 0}, {"utilisation": 0.0}, {"utilisation": 1.1}, {"coverage": 1.5},
     {"hot_gib": float("nan")}, {"coverage": float("nan")}, {"hot_gib": float("inf")}, {"depth": -1}],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        memory.Options(**bad).checked()


def test_a_whatif_saves_what_it_says() -> None:
    from lanelab import checkpoint, machine

    facts, box = checkpoint.load("mimo-v2.6-pro"), machine.load("gb300")
    gib, ms = memory.saved_by(facts, "o_proj", "fp8", box.hbm_gib_s)
    before = memory.plan(facts, box, memory.Options(hot_gib=100))
    after = memory.plan(facts, box, memory.Options(hot_gib=100, dtypes=(("o_proj", "fp8"),)))
    assert after.kv_gib - before.kv_gib == pytest.approx(gib)
    assert before.ceiling.step_ms - after.ceiling.step_ms == pytest.approx(ms)
    gib, ms = memory.saved_by(facts, "routed_experts", "bf16", box.hbm_gib_s)
    assert gib < 0 and ms < 0
