"""What a step would measure, and what it did: the two keys of a run, without a lane or a kernel.

The measure key comes from the campaign's plan, the notebook's parameters and metadata, the
workload's version and the lane's file. The render key comes from the notebook's cells, the
publishing code and the campaign's receipts. A changed comment changes neither what is measured nor
its key.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from lanelab import campaign as campaigns
from lanelab import lane as lanes
from lanelab import measure
from lanelab.errors import NotFound
from lanelab.publish.site import notebooks
from lanelab.receipts import measure_key, reuse
from lanelab.run.record import Measured, Render
from lanelab.run.source import Source

_REPORTED = ("papermill", "nbclient", "nbconvert", "ipykernel", "jupyter_client", "numpy", "matplotlib", "duckdb")


def measured(
    source: Source, plan: campaigns.Campaign | None, lane: str | None, parameters: Mapping[str, Any]
) -> list[Measured]:
    """The measure keys of the notebook's workloads under these parameters.

    A notebook's parameter with the name of a workload's parameter is that one (None: as the preset says).
    Raises `NotFound` for a workload that is not known, and what its `resolve` raises for a parameter.
    """
    if not source.workloads:
        return []
    found = []
    for name in source.workloads:
        if name not in measure.WORKLOADS:
            raise NotFound("workload", name, measure.WORKLOADS, hint=f"it stands in the metadata of {source.path.name}")
        workload = measure.WORKLOADS[name]
        preset = parameters.get("preset")
        own = {key: value for key, value in parameters.items() if key in workload.model.model_fields}
        inputs: dict[str, Any] = {
            "version": workload.version,
            "parameters": workload.resolve(
                preset if isinstance(preset, str) else None, {k: v for k, v in own.items() if v is not None}
            ),
            "model": plan.model if plan else None,
            "machine": plan.machine if plan else None,
            "recipe_digest": recipe_digest(lane),
        }
        found.append(Measured(workload=name, key=measure_key(workload=name, **inputs), inputs=inputs))
    return found


def recipe_digest(lane: str | None) -> str | None:
    """The digest of the recipe in the lane's file; None for a URL. Raises `UnknownLane`, `BadFile`."""
    if lane is None:
        return None
    recipe = lanes.load(lane).recipe_ref()
    return recipe.digest if recipe else None


def require_lane(source: Source, lane: str | None) -> None:
    """Raises `UnknownLane`, `LaneDown` if the notebook's workloads need a lane that does not answer."""
    if lane is None:
        raise NotFound("lane", "none", hint=f"{source.path.name} measures a lane: name it with --lane")
    lanes.resolve(lane)


def receipts_of_run(campaign_dir: Path, run_dir: Path) -> list[str]:
    """The ids of the receipts that this run used again, and of those that say they were made by it."""
    run_id = run_dir.name
    found = reuse.noted(run_dir)
    for path in sorted((campaign_dir / "receipts").glob("*/*.json")):
        try:
            content = path.read_bytes()
            if run_id.encode() in content and json.loads(content).get("run") == run_id:
                found.append(path.stem)
        except (OSError, ValueError, AttributeError):
            continue
    return found


def render(source: Source, campaign_dir: Path, parameters: Mapping[str, Any]) -> Render:
    """The render key as it is now, and what went into it; the site keeps its notebooks under that key."""
    return Render(
        key=notebooks.render_key(source.path, campaign_dir, parameters.items()),
        notebook_sha256=source.sha256,
        publishing_sha256=notebooks.code_digest(),
        receipts_sha256=receipts_sha256(campaign_dir),
    )


def receipts_sha256(campaign_dir: Path) -> str:
    """Of the campaign's receipt files, by name and content."""
    total = hashlib.sha256()
    for path in sorted((campaign_dir / "receipts").glob("*/*")):
        if path.is_file():
            total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Python's and of what ran the notebook."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in ("lanelab", *_REPORTED):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
