"""How each kind of lane is launched: the command, its environment and its folder. No shell in between."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from lanelab import paths
from lanelab.lane.errors import NotInstalled
from lanelab.lane.model import Lane

HOST = "127.0.0.1"
# a lane outlives the run that brought it up, so it must not carry that run's marks
_OF_A_RUN = ("LANELAB_CAMPAIGN", "LANELAB_STEP", "LANELAB_RUN", "LANELAB_RUN_DIR")


@dataclass(frozen=True)
class Launch:
    """What is executed."""

    argv: list[str]
    environment: dict[str, str]
    folder: Path


def launch_of(lane: Lane, port: int) -> Launch:
    """The command that serves this lane on this port. Raises `NotInstalled`."""
    assert lane.recipe is not None
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_RUN}
    environment.update(lane.recipe.variables())
    address = ["--host", HOST, "--port", str(port)]
    if lane.kind == "mini":
        argv = [sys.executable, "-m", "lanelab.mini", "serve", *address, *lane.recipe.arguments()]
    else:
        vllm = paths.root() / ".venv-vllm" / "bin" / "vllm"
        model = paths.root() / (lane.recipe.model or "")
        for path in (vllm, model / "config.json"):
            if not path.is_file():
                shown = path.relative_to(paths.root())
                raise NotInstalled(
                    f"lane {lane.name!r}: {shown} is not there; make it with: make lane-vllm",
                    lane=lane.name,
                    path=str(shown),
                )
        # the engine starts helpers of its own environment (ninja, compilers) by name
        environment["PATH"] = os.pathsep.join([str(vllm.parent), environment.get("PATH", os.defpath)])
        environment.pop("PYTHONPATH", None)
        argv = [str(vllm), "serve", str(model), *address, *lane.recipe.arguments()]
    environment["PYTHONUNBUFFERED"] = "1"
    return Launch(argv, environment, paths.root())
