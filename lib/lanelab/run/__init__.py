"""Notebooks executed: one run in a new folder, a campaign's plan, what is fresh and what is not.

`run` executes one notebook and returns how it ended; see `runner`.
"""

from lanelab.run.engine import Limits
from lanelab.run.errors import Refused
from lanelab.run.runner import Order, Result, prepare, refused, run
from lanelab.run.stopping import Stopped, Stopper

__all__ = ["Limits", "Order", "Refused", "Result", "Stopped", "Stopper", "prepare", "refused", "run"]
