"""Where the lab lives on disk.

The lab's root is the folder that holds `data/campaigns`: `LANELAB_ROOT` if set, else the nearest
such folder at or above the working folder, else the checkout that this package was installed from.
"""

from __future__ import annotations

import os
from pathlib import Path

from lanelab.errors import LabError


class NoLab(LabError):
    """No lab was found. Data: `path`."""


def root() -> Path:
    """The lab's root folder. Raises `NoLab` if there is none."""
    if given := os.environ.get("LANELAB_ROOT"):
        path = Path(given).resolve()
        if (path / "data" / "campaigns").is_dir():
            return path
        raise NoLab(f"LANELAB_ROOT={given!r} holds no data/campaigns; point it at a Lane Lab checkout", path=given)
    here = Path.cwd().resolve()
    source = Path(__file__).resolve().parents[2]
    for path in (here, *here.parents, source):
        if (path / "data" / "campaigns").is_dir():
            return path
    raise NoLab(f"no lab at or above {here}: run inside a Lane Lab checkout or set LANELAB_ROOT", path=str(here))


def data(*parts: str) -> Path:
    """A path under the lab's data/ folder."""
    return root().joinpath("data", *parts)
