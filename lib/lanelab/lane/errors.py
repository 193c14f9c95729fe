"""What can go wrong with a lane."""

from __future__ import annotations

from collections.abc import Iterable

from lanelab.errors import LabError, NotFound


class UnknownLane(NotFound):
    """No file data/lanes/<name>.yaml, and no URL either."""

    def __init__(self, name: str, valid: Iterable[str]) -> None:
        super().__init__("lane", name, valid, hint="an http:// or https:// URL works too")


class LaneDown(LabError):
    """The lane does not answer. Data: `lane`, `url`, `cause`."""


class LaneFailed(LabError):
    """The lane was started and did not become ready. Data: `lane`, `cause`, `log`, `exit_code`, `seconds`."""


class LaneDied(LabError):
    """The lane was ready once and its server has ended. Data: `lane`, `cause`, `log`, `exit_code`, `in_a_row`."""


class PortInUse(LabError):
    """The port is taken. Data: `port`, `pid`, `holder`."""


class LaneIsUp(LabError):
    """The lane is up in another way than asked for, and is never restarted. Data: `lane`, `url`."""


class NotOurs(LabError):
    """An attached lane belongs to somebody else: it is neither started nor stopped. Data: `lane`, `url`."""


class BadUrl(LabError):
    """Not the URL of an HTTP endpoint. Data: `url`."""

    exit_code = 2


class MissingKey(LabError):
    """The environment variable that holds the lane's API key is not set. Data: `lane`, `variable`."""


class NotInstalled(LabError):
    """What the lane launches is not installed. Data: `lane`, `path`."""
