"""Rows of the agent workload: short tool-shaped turns, one row a turn, and one row a task for its total."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register

State = Literal["warm", "cold", "contended", "unknown"]


class Agent(Row):
    """One turn of one task. `seconds_s` is the whole request, prefill included."""

    task: str
    turn: int = measured_in("1", says="which turn of the task, from 0")
    pass_number: int = measured_in("1", says="which pass over the tasks, from 1")
    completion_tokens: int | None = measured_in("tokens", None)
    seconds_s: float | None = measured_in("s", None, says="request sent to last token")
    finish: str | None = None
    tool_call: bool | None = None
    answer_empty: bool | None = None  # true: the answer held no text, only a call; null: not known
    row_state: State = "unknown"


class AgentTask(Row):
    """All turns of one task in one pass. `tok_s` is tokens over request seconds, so prefill counts against it."""

    task: str
    pass_number: int = measured_in("1", says="which pass over the tasks, from 1")
    tok_s: float | None = measured_in("tok/s", None)
    turns: int = measured_in("1")
    completion_tokens: int | None = measured_in("tokens", None)
    server_tokens: float | None = measured_in("tokens", None, says="generation counter of the server's metrics")
    accept_rate: float | None = measured_in("1", None, says="accepted / drafted; null without speculation")
    accept_per_step: float | None = measured_in("tokens", None)
    row_state: State = "unknown"


register("agent", 1, Agent, "turns of the agent tasks")
register("agent-task", 1, AgentTask, "speed by agent task")
