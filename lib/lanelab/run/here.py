"""`here`: the campaign of whoever cloned the lab, made from the plan of `mini`; git ignores it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lanelab import campaign as campaigns
from lanelab import machine, machine_here
from lanelab.receipts.files import write_atomic

MODEL_CAMPAIGN = "mini"
_COPIED = ("facts.yaml", "claims.yaml", "corrections.yaml")


def ensure(preset: str = "quick") -> campaigns.Campaign:
    """The campaign `here`, made from `mini`'s plan if there is none yet; this machine is looked at once.

    Where a step's parameters name a preset or a machine, `here` has its own. Raises `NotFound` if `mini` has no plan.
    """
    target = campaigns.folder(campaigns.HERE)
    made = (target / "campaign.yaml").is_file()
    model = campaigns.load(campaigns.HERE if made else MODEL_CAMPAIGN)
    if not machine.machine_path(machine.HERE).is_file():
        machine_here.write(machine_here.measure())
    if made:
        return model
    for name in _COPIED:
        _copy(model.dir / name, target / name)
    steps: list[dict[str, Any]] = []
    for step in model.steps:
        entry: dict[str, Any] = {"step": step.step}
        if step.lane:
            entry["lane"] = step.lane
        own = {"preset": preset, "machine": machine.HERE}
        wanted = {name: own.get(name, value) for name, value in step.parameters.items()}
        if wanted:
            entry["parameters"] = wanted
        steps.append(entry)
    plan = {
        "name": campaigns.HERE,
        "title": "This machine",
        "says": f"the plan of {MODEL_CAMPAIGN} with the {preset} preset; made by `lanelab campaign run here`",
        "model": model.model,
        "machine": machine.HERE,
        "lane": model.lane,
        "steps": steps,
    }
    text = yaml.safe_dump(plan, sort_keys=False, allow_unicode=True, width=110)
    write_atomic(target / "campaign.yaml", text.encode())
    return campaigns.load(campaigns.HERE)


def _copy(source: Path, target: Path) -> None:
    if source.is_file() and not target.exists():
        write_atomic(target, source.read_bytes())
