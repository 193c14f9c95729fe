"""`campaign run`: what is missing is measured, lane by lane; what is stale is named and left alone.

Re-measuring costs lane time, so it takes `--rerun STEP`, and the cost (what the step took last time)
is said first. A lane that was up already is used and left up; one that is down is brought up for this
campaign only (`ephemeral`) and taken down on every way out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lanelab import campaign as plans
from lanelab import lane as lanes
from lanelab.errors import LabError
from lanelab.run import freshness, runner
from lanelab.run.stopping import Stopped, Stopper
from lanelab.run.verdict import Limits

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What `campaign run` did."""

    campaign: str
    steps: list[freshness.StepState]
    ran: dict[str, dict[str, Any]] = field(default_factory=dict)  # step to the run's answer
    not_run: dict[str, str] = field(default_factory=dict)  # step to why
    lanes_started: list[str] = field(default_factory=list)
    stopped_by: int | None = None
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 if everything that was to be run ended ok; 130 or 143 after a signal."""
        if self.stopped_by is not None:
            return 128 + self.stopped_by
        return 0 if not self.not_run and all(run["status"] == "ok" for run in self.ran.values()) else 1

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        stale = {step.step: step.why for step in self.steps if step.state == "stale" and step.step not in self.ran}
        return {
            "campaign": self.campaign,
            "ran": self.ran,
            "not_run": self.not_run,
            "fresh": [step.step for step in self.steps if step.state == "fresh" and step.step not in self.ran],
            "stale": stale,
            "lanes_started": self.lanes_started,
            "nothing_to_do": not self.ran and not self.not_run,
            "seconds": round(self.seconds, 3),
        }


def choose(
    campaign: plans.Campaign, steps: list[freshness.StepState], rerun: list[str], asked: Mapping[str, Any]
) -> list[freshness.StepState]:
    """The steps to run: missing ones, those of `rerun`, and stale ones whose `asked` parameter has no receipt."""
    for name in rerun:
        campaign.step(name)
    return [
        step
        for step in steps
        if step.state == "missing"
        or (step.step in rerun and step.state in ("fresh", "stale"))
        or (step.state == "stale" and asked and _asked(step, asked))
    ]


def _asked(step: freshness.StepState, asked: Mapping[str, Any]) -> bool:
    """Whether it is stale by what this very call asks for and by nothing else."""
    return all("parameter" in why for why in step.why) and any(name in step.values for name in asked)


def run(
    name: str, *, rerun: list[str], lane: str | None = None, override: Mapping[str, Any] | None = None,
    ephemeral: bool = False, limits: Limits | None = None, say: Say = lambda _: None,
) -> Outcome:  # fmt: skip
    """Run what is missing of a campaign. Raises `LabError`s of the plan before anything is started."""
    began = time.monotonic()
    campaign = plans.load(name)
    asked = override or {}
    steps = freshness.states(campaign, lane=lane, override=asked)
    todo = choose(campaign, steps, rerun, asked)
    outcome = Outcome(name, steps)
    outcome.not_run.update({step.step: "; ".join(step.why) for step in steps if step.state == "unreadable"})
    _announce(steps, todo, rerun, say)
    stopper = Stopper()
    try:
        with stopper.listening():
            for lane_name in dict.fromkeys(step.lane if step.needs_lane else None for step in todo):
                group = [step for step in todo if (step.lane if step.needs_lane else None) == lane_name]
                _run_group(campaign, lane_name, group, outcome, stopper, ephemeral, limits or Limits(), say)
    except Stopped as stop:
        outcome.stopped_by = stop.signum
        for step in todo:
            if step.step not in outcome.ran:
                outcome.not_run.setdefault(step.step, "the campaign was told to stop")
    outcome.seconds = time.monotonic() - began
    return outcome


def _announce(steps: list[freshness.StepState], todo: list[freshness.StepState], rerun: list[str], say: Say) -> None:
    for step in steps:
        if step.state == "unreadable":
            say(f"error: {step.step}: {'; '.join(step.why)}")
        if step.state == "stale" and step not in todo:
            say(f"stale, kept: {step.step} ({step.brief()}); measure it again with --rerun {step.step}")
    for step in todo:
        cost = "never run yet"
        if not step.needs_lane:
            cost = "it needs no lane"
        elif step.lane_minutes is not None:
            cost = f"about {step.lane_minutes} lane minutes, as its last run took"
        again = "again" if step.step in rerun else f"because {step.brief()}"
        say(f"to run: {step.step} on {step.lane or 'no lane'}, {again} ({cost})")
    if not todo and all(step.state != "unreadable" for step in steps):
        fresh = sum(step.state == "fresh" for step in steps)
        say(f"nothing to run: {fresh} of {len(steps)} steps are fresh; no lane was started")


def _run_group(
    campaign: plans.Campaign, lane_name: str | None, group: list[freshness.StepState], outcome: Outcome,
    stopper: Stopper, ephemeral: bool, limits: Limits, say: Say,
) -> None:  # fmt: skip
    with contextlib.ExitStack() as stack:
        if lane_name is not None:
            try:
                stack.enter_context(_lane(lane_name, ephemeral, outcome, stopper, say))
            except LabError as error:
                say(f"error: {error}")
                outcome.not_run.update({step.step: str(error) for step in group})
                return
        for step in group:
            stopper.check()
            say(f"running {step.step}")
            order = runner.Order(step.step, campaign.name, None, {}, step.values, limits)
            try:
                result = runner.run(order, stopper, say)
            except LabError as error:
                say(f"error: {step.step} refused: {error}")
                outcome.ran[step.step] = runner.refused(order, error).data()
                continue
            outcome.ran[step.step] = result.data()
            say(f"{step.step}: {result.status}{f' ({result.reason})' if result.reason else ''}, {result.run_dir}")
        stopper.check()


@contextlib.contextmanager
def _lane(name: str, ephemeral: bool, outcome: Outcome, stopper: Stopper, say: Say) -> Iterator[None]:
    """The lane, up: as it is, or for the length of this block."""
    if not ephemeral:
        lanes.resolve(name)
        yield
        return
    with stopper.deferred_exit(lanes.ephemeral(name, progress=say)) as endpoint:
        if endpoint.started_here:
            outcome.lanes_started.append(name)
            say(f"lane {name} is up at {endpoint.base_url} for this campaign ({endpoint.boot_s or 0:.1f} s)")
        yield
