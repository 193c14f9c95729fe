"""`lanelab campaign new|run|status`."""

from __future__ import annotations

import click

from lanelab.cli.output import Answer, command, progress
from lanelab.cli.run import SECONDS

EMBEDDED = ("mini",)  # lanes that a campaign may bring up for itself


@click.group()
def campaign() -> None:
    """The plan of a campaign: make one, run what is missing, see what is stale."""


@command("new", "lanelab campaign new my-box --title 'MiMo on my box' --lane mini")
@click.argument("name")
@click.option("--title", help="The title of its posts. Default: the name.")
@click.option("--model", help="A model under data/models.")
@click.option("--machine", default="here", show_default=True, help="A machine under data/machines.")
@click.option("--lane", default="mini", show_default=True, help="The lane that its steps measure.")
def new(name: str, title: str | None, model: str | None, machine: str, lane: str) -> Answer:
    """Scaffold a campaign: plan, facts, claims, corrections and two posts."""
    from lanelab.run import scaffold

    files = scaffold.new(name, title=title, model=model, machine=machine, lane=lane)
    text = "\n".join([
        *map(str, files),
        f"its steps measure lane {lane}; campaign.yaml says which",
        f"next: lanelab campaign run {name}{' --ephemeral' if lane in EMBEDDED else ''}",
        "to publish it: add it to site/site.yaml; its posts are drafts until `draft: true` is taken out",
    ])  # fmt: skip
    return Answer({"campaign": name, "files": [str(path) for path in files]}, text)


@command("run", "lanelab campaign run here --ephemeral --preset quick")
@click.argument("name", metavar="CAMPAIGN")
@click.option("--preset", help="The preset of every step that has one, instead of the plan's.")
@click.option("--full", is_flag=True, help="The same as --preset full.")
@click.option("--rerun", metavar="STEP", multiple=True, help="Measure this step again, fresh or not.")
@click.option("--lane", help="Measure this lane instead of the plan's.")
@click.option("--ephemeral", is_flag=True, help="Bring lanes that are down up for this campaign, and down after it.")
@click.option("--cell-timeout-s", type=SECONDS, help="For each cell. Default: none.")
@click.option("--timeout-s", type=SECONDS, help="For each step. Default: none.")
def run(
    name: str, preset: str | None, full: bool, rerun: tuple[str, ...], lane: str | None, ephemeral: bool,
    cell_timeout_s: float | None, timeout_s: float | None,
) -> Answer:  # fmt: skip
    """Run what is missing of a campaign, lane by lane; name what is stale and why."""
    from lanelab.campaign import HERE
    from lanelab.run import Limits, campaigns, here

    wanted = "full" if full else preset
    if name == HERE:
        here.ensure()
    outcome = campaigns.run(
        name, rerun=list(rerun), lane=lane, override={"preset": wanted} if wanted else {}, ephemeral=ephemeral,
        limits=Limits(cell_s=cell_timeout_s, run_s=timeout_s), say=progress,
    )  # fmt: skip
    data = outcome.data()
    if data["nothing_to_do"]:
        text = f"nothing to run in {name}: every step is measured ({outcome.seconds:.1f} s)"
    else:
        ok = sum(run["status"] == "ok" for run in outcome.ran.values())
        text = f"{name}: {ok} of {len(outcome.ran) + len(outcome.not_run)} steps ran ok ({outcome.seconds:.1f} s)"
    return Answer(data, text, outcome.exit_code)


@command("status", "lanelab campaign status mini")
@click.argument("name", metavar="CAMPAIGN")
@click.option("--preset", help="Judge by this preset instead of the plan's.")
@click.option("--lane", help="Judge by this lane instead of the plan's.")
def status(name: str, preset: str | None, lane: str | None) -> Answer:
    """Which steps are fresh, stale (and why) or missing; nothing is started to find out."""
    from lanelab import campaign as campaigns
    from lanelab.run import freshness

    found = freshness.states(campaigns.load(name), lane=lane, override={"preset": preset} if preset else {})
    lines = [f"{'step':<24} {'state':<8} {'lane':<12} {'lane min':>8}  note"]
    for step in found:
        note = "; ".join(
            [
                *([step.brief()] if step.why else []),
                *([step.last] if step.last else []),
                *([] if step.rendered else ["not rendered"]),
            ]
        )
        minutes = "" if step.lane_minutes is None else f"{step.lane_minutes:.2f}"
        lines.append(f"{step.step:<24} {step.state:<8} {step.lane or '-':<12} {minutes:>8}  {note}".rstrip())
    states: dict[str, int] = {state: sum(step.state == state for step in found) for state in freshness.STATES}
    data: dict[str, object] = {"campaign": name, **states, "steps": [step.data() for step in found]}
    return Answer(data, "\n".join(lines) if found else f"campaign {name} has no steps")


campaign.add_command(new)
campaign.add_command(run)
campaign.add_command(status)
