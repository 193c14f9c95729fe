"""`lanelab`: the groups are imported when they are called, so that `--help` is quick."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from lanelab import __version__
from lanelab.cli.output import fail
from lanelab.errors import LabError, UsageError

# command: (module under lanelab.cli, attribute)
COMMANDS = {
    "ask": ("ask", "ask"),
    "campaign": ("campaign", "campaign"),
    "lane": ("lane", "lane"),
    "machine": ("machine", "machine"),
    "measure": ("measure", "measure"),
    "model": ("plan", "model"),
    "plan": ("plan", "plan"),
    "query": ("receipts", "query"),
    "run": ("run", "run"),
    "site": ("site", "site"),
    "verify": ("receipts", "verify"),
}


class Group(click.Group):
    """A group whose commands are imported when needed and whose help shows an example for each."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.lazy, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy:
            module, attribute = self.lazy[cmd_name]
            found = getattr(importlib.import_module(f"lanelab.cli.{module}"), attribute)
            assert isinstance(found, click.Command)
            return found
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: list[tuple[str, str]] = []
        for name in self.list_commands(ctx):
            found = self.get_command(ctx, name)
            if found is not None:
                rows.extend(_help_rows(name, found))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _help_rows(name: str, found: click.Command) -> list[tuple[str, str]]:
    if isinstance(found, click.Group):
        return [row for part, child in sorted(found.commands.items()) for row in _help_rows(f"{name} {part}", child)]
    example = getattr(found, "example", "")
    # \b keeps click from filling the two lines into one
    return [(name, f"\b\n{found.get_short_help_str(90)}\n  {example}")]


@click.group(
    cls=Group, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="lanelab")
def cli() -> None:
    """A lab notebook for serving campaigns: executed, replayed and published."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point: bad usage is one line and exit code 2; never a traceback for a user's mistake."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    try:
        cli.main(args=given, prog_name="lanelab", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "lanelab"
        return fail(UsageError(f"{error.format_message()} (see '{where} --help')"), as_json)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except LabError as error:
        return fail(error, as_json)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return 0


def entry() -> None:
    """The console script."""
    sys.exit(main())
