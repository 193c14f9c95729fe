"""How every command answers.

A command returns an `Answer`. With `--json` its data is the last line of stdout, one JSON object,
also when it fails; otherwise its text is printed. Logs and progress go to stderr. An error is one
line on stderr that names the offending value and what would be valid.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from lanelab.errors import LabError
from lanelab.receipts.canonical import without_nan


@dataclass
class Answer:
    """What a command found: `data` for `--json`, `text` for people."""

    data: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0


def command(name: str, example: str, **settings: Any) -> Callable[[Callable[..., Answer]], click.Command]:
    """Make a function that returns an `Answer` into a command with `--json`; `example` ends its help."""

    def wrap(function: Callable[..., Answer]) -> click.Command:
        @functools.wraps(function)
        def run(as_json: bool, **given: Any) -> None:
            sys.exit(deliver(lambda: function(**given), as_json))

        about = (function.__doc__ or "").split("\n")[0]
        make: Callable[[Callable[..., None]], click.Command] = click.command(
            name, epilog=f"Example: {example}", short_help=about, **settings
        )
        made = make(run)
        made.params.append(
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object, last on stdout.")
        )
        made.example = example  # type: ignore[attr-defined]
        return made

    return wrap


def deliver(call: Callable[[], Answer], as_json: bool) -> int:
    """Run a command's body, print its answer or its error; returns the exit code."""
    try:
        answer = call()
    except LabError as error:
        return fail(error, as_json)
    except KeyboardInterrupt:
        if as_json:
            _print_json({"error": {"type": "Interrupted", "message": "interrupted"}})
        click.echo("interrupted", err=True)
        return 130
    if as_json:
        _print_json(answer.data)
    elif answer.text:
        click.echo(answer.text)
    return answer.exit_code


def fail(error: LabError, as_json: bool) -> int:
    """Print an error the way `deliver` does; returns its exit code."""
    if as_json:
        data = {key: value for key, value in error.data.items() if _plain(value)}
        _print_json({"error": {**data, "type": type(error).__name__, "message": str(error)}})
    click.echo(f"error: {error}", err=True)
    return error.exit_code


def _plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _print_json(data: dict[str, Any]) -> None:
    click.echo(json.dumps(without_nan(data), ensure_ascii=False, default=str))


def progress(text: str) -> None:
    """One line on stderr for whoever waits."""
    click.echo(text, err=True)
