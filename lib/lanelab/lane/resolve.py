"""From a lane's name, or a URL, to the endpoint that answers there now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanelab.errors import LabError
from lanelab.lane import wire
from lanelab.lane.errors import LaneDied, LaneDown
from lanelab.lane.model import Endpoint, Lane, base_url, is_url, key_headers, lane_names, load
from lanelab.lane.state import State, read_state
from lanelab.receipts.model import RecipeRef


def resolve(name_or_url: str, *, timeout_s: float = 5.0) -> Endpoint:
    """The endpoint of a lane that is up. Raises `UnknownLane`, `BadUrl`, `MissingKey`, `LaneDown`, `LaneDied`."""
    lane = load(name_or_url)
    state = None if lane.kind == "attach" else _running_state(lane)
    url = state.url if state else base_url(lane.url or "")
    shown = url if is_url(name_or_url) else lane.name
    headers = key_headers(shown, lane.api_key_env)
    try:
        entry = wire.served_model(url, lane.model, headers, timeout_s)
    except wire.NoAnswer as error:
        raise LaneDown(
            f"lane {shown!r} is down: {error}" + ("" if lane.kind == "attach" else f" ({_how(lane.name)})"),
            lane=shown,
            url=url,
            cause=str(error),
        ) from error
    return Endpoint(
        base_url=url,
        model=entry["id"],
        lane_name=shown,
        recipe=state.recipe if state else _ref(lane),
        server=_server(url, entry, headers, timeout_s, lane, state),
        emulated=lane.emulated,
        api_key_env=lane.api_key_env,
        boot_s=state.boot_s if state else None,
    )


@dataclass(frozen=True)
class LaneStatus:
    """One line of `lane list`. `phase`: up, down, starting, failed, died, or `unreadable` (see `problem`)."""

    name: str
    kind: str
    phase: str
    url: str | None = None
    pid: int | None = None
    since: float | None = None
    boot_s: float | None = None
    ephemeral: bool = False
    failures_in_a_row: int = 0
    problem: str | None = None
    says: str = ""


def list_lanes() -> list[LaneStatus]:
    """Every lane that has a file and how it stands; a broken file is a line, not an error."""
    return [_status(name) for name in lane_names()]


def _status(name: str) -> LaneStatus:
    try:
        lane = load(name)
        state = read_state(name)
    except LabError as error:
        return LaneStatus(name, "?", "unreadable", problem=str(error))
    if lane.kind == "attach":
        try:
            resolve(name, timeout_s=1.0)
        except LabError as error:
            return LaneStatus(name, lane.kind, "down", lane.url, problem=str(error), says=lane.says)
        return LaneStatus(name, lane.kind, "up", lane.url, says=lane.says)
    if state is None:
        return LaneStatus(name, lane.kind, "down", says=lane.says)
    if state.running():
        return LaneStatus(
            name,
            lane.kind,
            "up" if state.phase == "ready" else "starting",
            state.url,
            state.server.pid if state.server else None,
            state.begun,
            state.boot_s,
            state.owner is not None,
            state.failures_in_a_row,
            says=lane.says,
        )
    phase = "died" if state.phase in ("starting", "ready") else state.phase.replace("stopped", "down")
    cause = state.cause or ("its supervisor was killed" if phase == "died" else None)
    return LaneStatus(name, lane.kind, phase, failures_in_a_row=state.failures_in_a_row, problem=cause, says=lane.says)


def _running_state(lane: Lane) -> State:
    state = read_state(lane.name)
    if state is None or state.phase == "stopped":
        raise LaneDown(f"lane {lane.name!r} is down; {_how(lane.name)}", lane=lane.name, url=None, cause="not started")
    if not state.running():
        cause = state.cause or "its supervisor was killed"
        code = f" with exit code {state.exit_code}" if state.exit_code is not None else ""
        repeated = f" ({state.failures_in_a_row} times in a row)" if state.failures_in_a_row > 1 else ""
        raise LaneDied(
            f"lane {lane.name!r} ended{code}{repeated}: {cause}; {_how(lane.name)}",
            lane=lane.name,
            cause=cause,
            log=state.log,
            exit_code_of_server=state.exit_code,
            in_a_row=state.failures_in_a_row,
        )
    if state.phase == "starting":
        raise LaneDown(
            f"lane {lane.name!r} is still starting; wait for it with: lanelab lane up {lane.name}",
            lane=lane.name,
            url=state.url,
            cause="starting",
        )
    return state


def _server(
    url: str, entry: dict[str, Any], headers: dict[str, str], timeout_s: float, lane: Lane, state: State | None
) -> dict[str, Any]:
    """What the server says of itself. Arguments are the command's, known only for a lane started here."""
    server: dict[str, Any] = {"engine": entry.get("owned_by"), "max_model_len": entry.get("max_model_len")}
    try:
        answer = wire.ask_json(url.removesuffix("/v1") + "/version", headers=headers, timeout_s=timeout_s)
        server["version"] = answer.get("version")
    except wire.NoAnswer:
        server["version"] = None
    if state and lane.recipe:
        server["arguments"] = lane.recipe.arguments()
    return {key: value for key, value in server.items() if isinstance(value, (str, int, float, list))}


def _ref(lane: Lane) -> RecipeRef | None:
    return lane.recipe_ref()


def _how(name: str) -> str:
    return f"bring it up with: lanelab lane up {name}"
