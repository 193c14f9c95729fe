"""Notebooks executed: one run in a new folder, a campaign's plan, what is fresh and what is not.

`run` executes one notebook and returns how it ended; see `runner`.
"""

from lanelab.run import lean

lean.import_nbformat()

from lanelab.run.errors import Refused  # noqa: E402
from lanelab.run.runner import Order, Result, prepare, refused, run  # noqa: E402
from lanelab.run.stopping import Stopped, Stopper  # noqa: E402
from lanelab.run.verdict import Limits  # noqa: E402

__all__ = ["Limits", "Order", "Refused", "Result", "Stopped", "Stopper", "prepare", "refused", "run"]
