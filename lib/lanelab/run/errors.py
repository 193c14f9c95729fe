"""Why a run does not begin."""

from __future__ import annotations

from lanelab.errors import LabError


class Refused(LabError):
    """A run that was not begun: nothing was executed and nothing written."""

    exit_code = 2


class UnknownKernel(Refused):
    """No Jupyter kernel of that name is installed. Data: `name`, `valid`."""


class UnreadableNotebook(Refused):
    """The file is no notebook that can be run. Data: `path`."""
