"""`lanelab model` and `lanelab plan`: what a checkpoint holds, and what of it fits where."""

from __future__ import annotations

from typing import Any

import click

from lanelab import checkpoint, machine, memory
from lanelab.checkpoint.dtypes import dtype
from lanelab.cli.numbers import Finite
from lanelab.cli.output import Answer, command
from lanelab.errors import LabError, UsageError
from lanelab.memory import kv
from lanelab.memory.units import GIB, MIB


@command("model", "lanelab model mimo-v2.6-pro")
@click.argument("model")
def model(model: str) -> Answer:
    """Architecture, parameters, bytes by role, cells and KV bytes; reads headers only.

    MODEL is a name under data/models, a checkpoint folder, a .safetensors file or a config.json.
    """
    facts = _model(model)
    shape, cache = facts.shape, kv.kv_cache(facts)
    rows = [
        {
            "role": item.role, "parameters": item.parameters, "bytes": item.bytes, "weight_bytes": item.weight_bytes,
            "scale_bytes": item.scale_bytes, "dtype": item.dtype, "loaded": item.loaded, "origin": item.origin,
        }
        for item in sorted(facts.ledger, key=lambda item: -item.bytes)
    ]  # fmt: skip
    data = {
        "model": facts.name,
        "title": facts.title,
        "architecture": shape.model_type,
        "known_architecture": shape.known,
        "layers": shape.layers,
        "moe_layers": shape.moe_layers,
        "experts": shape.experts,
        "top_k": shape.top_k,
        "parameters_total": facts.parameters_total,
        "parameters_active": facts.parameters_active,
        "bytes_total": sum(item.bytes for item in facts.ledger),
        "bytes_by_role": {str(row["role"]): row["bytes"] for row in rows},
        "roles": rows,
        "cells": facts.cells,
        "cell_bytes": facts.cell_weight_bytes + facts.cell_scale_bytes,
        "cell_weight_bytes": facts.cell_weight_bytes,
        "cell_scale_bytes": facts.cell_scale_bytes,
        "kv_bytes_per_token": cache.slope_bytes,
        "kv_sliding_bytes_per_token": cache.sliding_bytes,
        "kv_window": cache.window or None,
        "max_context": shape.max_context,
        "warnings": facts.warnings,
        "disagreements": [item.model_dump() for item in facts.disagreements],
    }
    lines = [
        facts.title,
        f"{shape.layers} layers, {shape.moe_layers} of them MoE; {shape.experts} experts, top {shape.top_k}",
        f"{facts.parameters_total / 1e9:,.2f} B parameters, {facts.parameters_active / 1e9:,.2f} B active a token",
        *(f"  {row['role']:16} {int(str(row['bytes'])) / GIB:10.3f} GiB  {row['dtype']}" for row in rows),
        f"{facts.cells:,} cells of {(facts.cell_weight_bytes + facts.cell_scale_bytes) / MIB:.3f} MiB",
        f"KV {cache.slope_bytes:,} B a token"
        + (f", and {cache.sliding_bytes:,} B a token within {cache.window} tokens" if cache.sliding_bytes else ""),
        *(f"warning: {text}" for text in facts.warnings),
    ]
    return Answer(data, "\n".join(lines))


def _pairs(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for item in given:
        role, sign, name = item.partition("=")
        if not sign or not role or not name:
            raise UsageError(f"--set {item!r} can't be read (valid: role=dtype, as in o_proj=fp8)", value=item)
        if role in (known for known, _ in found):
            raise UsageError(f"--set {item!r} gives {role} a second time (valid: one dtype a role)", value=item)
        found.append((role, name))
    return tuple(found)


def _model(name: str) -> checkpoint.Facts:
    if not name.strip():
        raise UsageError("the model's name is empty (valid: a name under data/models, or the path of a checkpoint)")
    return checkpoint.load(name)


def _refuse_what_is_not_there(facts: checkpoint.Facts, what_ifs: tuple[tuple[str, str], ...], kv: str | None) -> None:
    """A role or dtype that this model cannot have is a mistake of the call: exit code 2."""
    option = "--kv-dtype"
    try:
        if kv is not None:
            dtype(kv)
        for role, name in what_ifs:
            option = f"--set {role}={name}"
            facts = facts.set_dtype(role, name)
    except LabError as error:
        raise UsageError(f"{option}: {error}", option=option) from error


@command("plan", "lanelab plan mimo-v2.6-pro --machine gb300 --hot-gib 152.8 --context 262144 --utilisation 0.96")
@click.argument("model")
@click.option("--machine", "machine_name", required=True, help="Name under data/machines; 'here' once it was measured.")
@click.option(
    "--hot-gib",
    type=Finite(),
    help="GiB of expert weights (scales not counted) to keep in HBM; default: all that fits.",
)
@click.option("--context", type=int, help="Tokens a request; default 32768, or the model's limit.")
@click.option("--streams", type=int, default=1, show_default=True, help="Requests at once.")
@click.option(
    "--set", "what_ifs", multiple=True, metavar="ROLE=DTYPE", help="Plan with a role stored otherwise, as o_proj=fp8."
)
@click.option(
    "--coverage", type=Finite(), help="Share of the experts read that are hot (0 to 1); default: uniform routing."
)
@click.option(
    "--utilisation",
    type=Finite(),
    default=memory.Options.utilisation,
    show_default=True,
    help="Share of memory to use.",
)
@click.option("--reserve-gib", type=Finite(), help="Graphs, activations, workspace; default: the machine's.")
@click.option("--depth", type=int, default=0, show_default=True, help="Tokens in the cache when the ceiling is taken.")
@click.option("--kv-dtype", help="As the cache is stored, as fp8; default: the model's.")
@click.option(
    "--scales", type=click.Choice(["hbm", "cells"]), default="hbm", show_default=True,
    help="Where scales of cold experts are: all in HBM, or with their cells.",
)  # fmt: skip
@click.option("--hbm-gib", type=Finite(), help="Emulate a tier of HBM of this size in host memory (labelled emulated).")
@click.option("--link-gib-s", type=Finite(), help="Speed of the emulated link; default: the host's memory.")
def plan(
    model: str,
    machine_name: str,
    what_ifs: tuple[str, ...],
    hbm_gib: float | None,
    link_gib_s: float | None,
    **given: Any,
) -> Answer:
    """What fits where, the KV cache that is left, and the decode ceiling with its terms."""
    if link_gib_s is not None and hbm_gib is None:
        raise UsageError("--link-gib-s goes with --hbm-gib: only an emulated tier has an emulated link")
    for name, value in (("--hbm-gib", hbm_gib), ("--link-gib-s", link_gib_s)):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{name} {value!r} can't be (valid: over 0)", option=name, value=value)
    pairs = _pairs(what_ifs)
    box = machine.load(machine_name)
    if hbm_gib is not None:
        box = box.with_emulated_hbm(hbm_gib, link_gib_s)
    facts = _model(model)
    _refuse_what_is_not_there(facts, pairs, given["kv_dtype"])
    planned = memory.plan(facts, box, memory.Options(dtypes=pairs, **given))
    return Answer(planned.as_json(), _text(planned))


def _text(planned: memory.Plan) -> str:
    data = planned.fields()
    places = [f"  {part.memory:5} {part.part:28} {part.gib:9.2f} GiB" for part in memory.memory_parts(planned)]
    terms = [
        f"  {term.name:20} {term.gib:9.3f} GiB over {term.memory:5} {'?' if term.ms is None else f'{term.ms:8.2f}'} ms"
        for term in planned.ceiling.terms
    ]
    speed = planned.ceiling.tok_s
    lines = [
        f"{planned.facts.title} on {planned.machine.title}: {str(planned.verdict).replace('_', ' ')} (predicted)",
        *places,
        f"{planned.hot:,} of {planned.facts.cells:,} cells hot ({data['hot_layers_equivalent']:.2f} layers), {planned.cold:,} cold",
        f"KV {data['kv_tokens']:,} tokens in requests of {planned.context:,}; longest context {data['context_max']:,}",
        f"one step of {planned.options.streams} at coverage {planned.coverage:.3f}:",
        *terms,
        "no ceiling" if speed is None else f"  at most {speed:.1f} tok/s, all streams together",
        f"host peak {planned.host_peak_gib:.1f} of {planned.machine.host_gib.value:g} GiB",
        *(f"assumed {name}: {text}" for name, text in planned.assumed.items()),
        *(
            f"{finding.severity}: {finding.message}" + (f" → {finding.fix}" if finding.fix else "")
            for finding in planned.findings
        ),
    ]
    return "\n".join(lines)
