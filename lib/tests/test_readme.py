"""README is made from what it tells of: nothing in it is typed that a file or a receipt knows."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from lanelab.cli.main import cli, main
from lanelab.publish.prose import loose_digits

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))


def _readme_module():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "lib" / "dev" / "readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_are_what_would_be_written() -> None:
    module = _readme_module()
    assert module.expanded(README) == README, "run python lib/dev/readme.py"
    worn = README.replace("-->37.4 tok/s<!--", "-->99.9 tok/s<!--").replace("04-decode.ipynb", "04-gone.ipynb")
    assert worn != README
    assert module.expanded(worn) == README


def test_no_number_is_typed() -> None:
    prose = re.sub(r"<!-- fact \S+ -->.*?<!-- /fact -->", "a fact", README)
    prose = prose.replace("(3.11 or newer)", "(as pyproject.toml says)")
    assert [finding.text for finding in loose_digits(prose)] == []
    assert loose_digits(prose.replace("a fact", "37.4 tok/s"))


def test_the_python_it_asks_for_is_the_one_of_pyproject() -> None:
    wanted = re.search(r"Python \(([\d.]+) or newer\)", README).group(1)
    assert f'requires-python = ">={wanted}"' in (ROOT / "pyproject.toml").read_text()


def test_every_make_target_it_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)", README))
    assert {"campaign", "test", "site"} <= named <= TARGETS


def test_pictures_and_files_it_names_exist() -> None:
    for path in re.findall(r'\]\((?!https?:)([^)#]+)\)|src="([^"]+)"', README):
        assert (ROOT / (path[0] or path[1])).is_file()
    for path in re.findall(r"`(data/\w+/|[A-Z]+\.md)`", README):
        assert (ROOT / path).exists()


@pytest.mark.parametrize(
    "line", sorted(set(re.findall(r"^(?:\.venv/bin/)?lanelab (.+?)(?:\s{2,}#.*)?$", README, re.M)))
)
def test_every_command_line_is_one_that_the_command_line_takes(line: str, capsys) -> None:
    """With `--help` in place of running: an unknown command or option is bad usage."""

    words = shlex.split(line)
    assert main([*words, "--help"]) == 0
    capsys.readouterr()
    command = cli
    context = cli.make_context("lanelab", [], resilient_parsing=True)
    while words and (found := getattr(command, "get_command", lambda *_: None)(context, words[0])):
        command, words = found, words[1:]
    command.make_context("x", words)
