"""Which steps of a campaign are measured, which are stale and why; nothing is started to find out.

A step is **fresh** when, for each of its workloads, a receipt that counts has the measure key that
the step would have now. It is **stale** when such receipts exist but with another key: the difference
is named. It is **missing** when there is none. A step without workloads (arithmetic only) is judged by
its latest good run. A step without a lane shows what others **published**; nothing can be measured there.
One whose notebook or parameters cannot be read is **unreadable**. Rendering is a matter of its own: the site renders what its render key says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from lanelab import campaign as campaigns
from lanelab import paths
from lanelab.errors import LabError
from lanelab.publish.site.config import SiteFolders
from lanelab.receipts import Receipt, key_of, lane_label, measure_key
from lanelab.receipts.counting import counting
from lanelab.run import parameters as reading
from lanelab.run import plan, record
from lanelab.run.source import Source, find, read

State = Literal["fresh", "stale", "missing", "published", "unreadable"]
STATES: tuple[State, ...] = get_args(State)


@dataclass
class StepState:
    """One step of the plan as it stands."""

    step: str
    lane: str | None
    state: State
    why: list[str] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    run: str | None = None  # the latest good run
    last: str | None = None  # how the latest run ended, if not well
    lane_minutes: float | None = None  # of the latest good run; None if it needs no lane
    rendered: bool = False  # whether the site holds this step as it stands now
    needs_lane: bool = False
    values: dict[str, Any] = field(default_factory=dict)  # what `run` will pass

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def brief(self, most: int = 3) -> str:
        """The reasons in one line, at most so many of them."""
        more = [f"and {len(self.why) - most} more"] if len(self.why) > most else []
        return "; ".join([*self.why[:most], *more])


@dataclass
class Kept:
    """What a campaign's folder holds: the receipts that count, and the runs."""

    receipts: list[Receipt]
    dir: Path

    @classmethod
    def of(cls, campaign_dir: Path) -> Kept:
        """Read once for all steps. Raises `BadFile`."""
        return cls(counting(campaign_dir), campaign_dir)

    def of_workload(self, step: str, workload: str) -> list[Receipt]:
        """The receipts that count of one workload of a step, latest last."""
        found = [item for item in self.receipts if item.step == step and item.source.workload == workload]
        return sorted(found, key=lambda item: item.id.partition("-")[2])


def without_model(measured: record.Measured) -> record.Measured:
    """The same measurement of whatever model the lane serves."""
    inputs = {**measured.inputs, "model": None}
    return record.Measured(
        workload=measured.workload, key=measure_key(workload=measured.workload, **inputs), inputs=inputs
    )


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What changed between two inputs of a measure key, one phrase each."""
    found: list[str] = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{prefix}{name.removesuffix('s')} ")
        else:
            found.append(f"{prefix}{name}: {_short(old)} → {_short(new)}")
    return found


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text.removeprefix("sha256:")[:12] if text.startswith("sha256:") else text[:60]


def values_for(
    source: Source, name: str, step: campaigns.Step, lane: str | None, override: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters that a step of the plan is run with; `override` counts where the notebook has the name.

    Raises `UnknownParameter`, `BadParameter`.
    """
    known = reading.declared(source.notebook)
    wanted = {**step.parameters, **{key: value for key, value in override.items() if key in known}}
    ambient: dict[str, Any] = {"campaign": name, "measure": True, **({"lane": lane} if lane else {})}
    wanted.update({key: value for key, value in ambient.items() if key in known})
    return reading.chosen(source.notebook, wanted, {})


def state_of(
    campaign: campaigns.Campaign,
    step: campaigns.Step,
    kept: Kept,
    *,
    lane: str | None = None,
    override: Mapping[str, Any] | None = None,
) -> StepState:
    """How one step stands. Raises what an unreadable notebook, parameter, lane or run record raises."""
    lane = lane or campaign.lane_of(step)
    if lane is None:
        mine = [item.id for item in kept.receipts if item.step == step.step]
        return StepState(step.step, None, "published", ["no lane: its receipts are others'"], mine)
    source = read(find(step.step))
    values = values_for(source, campaign.name, step, lane, override or {})
    defaults = {item.name: item.default for item in reading.declared(source.notebook).values()}
    measures = plan.measured(source, campaign, lane, {**defaults, **values})
    runs = record.of_step(kept.dir, step.step)
    good = [run for run in runs if run.status == "ok"]
    found = StepState(step.step, lane if measures else None, "fresh", needs_lane=bool(measures), values=values)
    found.run = good[-1].id if good else None
    if good and measures:
        found.lane_minutes = round((good[-1].seconds or 0.0) / 60, 2)
    if runs and runs[-1].status not in ("ok", "running"):
        found.last = f"the latest run {runs[-1].status}: {runs[-1].reason}"
    render = plan.render(source, kept.dir, step.parameters)
    folder = SiteFolders(paths.root()).cache / campaign.name
    found.rendered = (folder / f"{step.step}-{render.key[:32]}.ipynb").is_file()
    if measures:
        # of a lane that the plan does not name only the server knows the model
        planned = lane in {campaign.lane, *(item.lane for item in campaign.steps)}
        for measured in measures if planned else [without_model(item) for item in measures]:
            _judge(found, measured, kept.of_workload(step.step, measured.workload))
    else:
        _judge_by_run(found, good, values)
    return found


def _judge(found: StepState, measured: record.Measured, receipts: list[Receipt]) -> None:
    if not receipts:
        found.state = "missing"
        found.why.append(f"{measured.workload} has no receipt")
        return
    found.receipts += [item.id for item in receipts]
    known_model = measured.inputs["model"] is not None
    if any(key_of(item, known_model)[0] == measured.key for item in receipts):
        return
    before = receipts[-1]
    if before.lane != lane_label(found.lane):  # its recipe is another's, so there is nothing to compare
        found.why.append(
            f"{measured.workload} was measured on lane {before.lane or 'none'}, the plan says {found.lane}"
        )
        found.state = "stale"
        return
    changed = differences(key_of(before, known_model)[1], measured.inputs)
    found.why += [f"{measured.workload}: {item}" for item in changed]
    if found.state == "fresh":
        found.state = "stale"


def _judge_by_run(found: StepState, good: list[record.Run], values: Mapping[str, Any]) -> None:
    if not good:
        found.state = "missing"
        found.why.append("it has not been run")
        return
    found.receipts += good[-1].receipts
    before = {name: value.value for name, value in good[-1].parameters.items()}
    now = {name: value for name, value in values.items() if name != "lane"}  # a step without workloads uses none
    changed = differences({name: before.get(name) for name in now}, now, "parameter ")
    if changed:
        found.state, found.why = "stale", changed


def states(
    campaign: campaigns.Campaign, *, lane: str | None = None, override: Mapping[str, Any] | None = None
) -> list[StepState]:
    """Every step of the plan, in its order. Raises `BadFile` for an unreadable receipt or run record."""
    kept = Kept.of(campaign.dir)
    found = []
    for step in campaign.steps:
        try:
            found.append(state_of(campaign, step, kept, lane=lane, override=override))
        except LabError as error:
            found.append(StepState(step.step, lane or campaign.lane_of(step), "unreadable", [str(error)]))
    return found
