"""The wire: lanes and their lives, the stream client, metrics.

`load` reads a lane's file, `up` and `down` rule its life, `resolve` gives the endpoint that answers
now, `check` says what works there.
"""

from lanelab.lane.check import CheckResult, check
from lanelab.lane.control import down, down_all, ephemeral, up
from lanelab.lane.errors import (
    BadUrl,
    LaneDied,
    LaneDown,
    LaneFailed,
    LaneIsUp,
    MissingKey,
    NotInstalled,
    NotOurs,
    PortInUse,
    UnknownLane,
)
from lanelab.lane.model import Endpoint, Lane, base_url, load
from lanelab.lane.resolve import LaneStatus, list_lanes, resolve

__all__ = [
    "BadUrl",
    "CheckResult",
    "Endpoint",
    "Lane",
    "LaneDied",
    "LaneDown",
    "LaneFailed",
    "LaneIsUp",
    "LaneStatus",
    "MissingKey",
    "NotInstalled",
    "NotOurs",
    "PortInUse",
    "UnknownLane",
    "base_url",
    "check",
    "down",
    "down_all",
    "ephemeral",
    "list_lanes",
    "load",
    "resolve",
    "up",
]
