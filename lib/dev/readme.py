"""Fill the generated parts of README.md, so that nothing in it is typed that a receipt or a file knows.

    python lib/dev/readme.py           rewrites README.md
    python lib/dev/readme.py --check   exits 1 if README.md is not what would be written

Between `<!-- NAME -->` and `<!-- /NAME -->` stands what this script makes:
`tree` (the files, a line each), `targets` (the Makefile's), `commands` (lanelab's, with an example each);
`<!-- fact CAMPAIGN.NAME -->…<!-- /fact -->` holds a fact's value with its unit, in running text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from lanelab.cli.main import cli
from lanelab.publish import facts

ROOT = Path(__file__).resolve().parents[2]

# Folders and files that the tree shows; the text is the first sentence of what stands there, or this one.
TREE: dict[str, str] = {
    "notebooks": "the steps: thin, parameterised, stored without outputs",
    "lib/lanelab": "the library: everything a notebook does is one call into it",
    "lib/tests": "the tests, laid out like the library",
    "lib/benchmarks": "speeds that are promised, one JSON line each",
    "data/machines": "one YAML a machine",
    "data/lanes": "one YAML a lane",
    "data/models": "one folder a model: config facts and byte ledger",
    "data/campaigns": "one folder a campaign: plan, receipts, runs, facts, claims, corrections",
    "site": "the Quarto project: posts, receipts browser, methods, how-tos",
}


def first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring, or a notebook's title."""
    if path.suffix == ".ipynb":
        title = re.search(r'"# ([^"\\]+)', path.read_text())
        return title.group(1) if title else ""
    text = path.read_text()
    match = re.match(r'"""(.+?)(?:\.\s|\n\n|""")', text, re.S)
    return " ".join(match.group(1).split()).rstrip(".") if match else ""


def tree_lines() -> Iterator[str]:
    """One line a file or folder."""
    for name, says in TREE.items():
        yield f"{name + '/':<29}{says}"
        if name == "notebooks":
            for path in sorted((ROOT / name).glob("*.ipynb")):
                yield f"  {path.name:<27}{first_sentence(path)}"
        if name == "lib/lanelab":
            for path in sorted((ROOT / name).iterdir()):
                if path.suffix == ".py" and path.stem != "__init__":
                    yield f"  {path.name:<27}{first_sentence(path)}"
                elif (path / "__init__.py").exists():
                    yield f"  {path.name + '/':<27}{first_sentence(path / '__init__.py')}"


def targets() -> Iterator[str]:
    """The Makefile's targets, as `make help` prints them."""
    for name, says in re.findall(r"^([a-z-]+):.*?## (.+)$", (ROOT / "Makefile").read_text(), re.M):
        yield f"make {name:<12}{says}"


def commands() -> Iterator[str]:
    """An example of every command, with what it does."""

    def walk(name: str, found: click.Command) -> Iterator[tuple[str, str]]:
        if isinstance(found, click.Group):
            context = click.Context(found)
            for part in found.list_commands(context):
                child = found.get_command(context, part)
                if child is not None:
                    yield from walk(f"{name} {part}".strip(), child)
        else:
            yield getattr(found, "example", name), found.get_short_help_str(120)

    for example, says in walk("", cli):
        yield f"# {says}"
        yield example


def expanded(text: str) -> str:
    """README's text with every generated part made anew."""
    blocks = {"tree": tree_lines, "targets": targets, "commands": commands}
    for name, make in blocks.items():
        body = (
            ("```sh\n" if name == "commands" else "```text\n") + "\n".join(line.rstrip() for line in make()) + "\n```"
        )
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        text = block.sub(lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text)
    cache: dict[str, dict[str, facts.Fact]] = {}

    def fact(match: re.Match[str]) -> str:
        campaign, name = match[2].split(".", 1)
        if campaign not in cache:
            cache[campaign] = facts.evaluate(ROOT / "data" / "campaigns" / campaign)
        return match[1] + cache[campaign][name].text + match[3]

    return re.sub(r"(<!-- fact ([\w.-]+) -->).*?(<!-- /fact -->)", fact, text)


def main() -> int:
    target = ROOT / "README.md"
    text = target.read_text()
    made = expanded(text)
    if "--check" in sys.argv[1:]:
        if made != text:
            print("README.md differs from what it is made of: run python lib/dev/readme.py", file=sys.stderr)
        return 0 if made == text else 1
    target.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
