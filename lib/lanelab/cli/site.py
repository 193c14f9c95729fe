"""`lanelab site`: the website and its gate."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import click

from lanelab import paths
from lanelab.cli.output import Answer, command, progress
from lanelab.errors import UsageError


@click.group("site", short_help="The website: build, check.")
def site() -> None:
    """Turn receipts, notebooks and posts into the website, and hold it to its sources."""


@command("build", "lanelab site build")
@click.option("--quarto", "renderer", flag_value="quarto", help="Render with Quarto; an error where it is missing.")
@click.option("--fallback", "renderer", flag_value="fallback", help="Render with smalldocs even where Quarto is.")
@click.option("--url", default=None, help="Where the site is published; RSS and social images need it.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Notebooks at a time.")
@click.option("--force", is_flag=True, help="Build even if the site that stands was built from the same.")
def build(renderer: str | None, url: str | None, workers: int, force: bool) -> Answer:
    """Build the website into site/_site; stops at a receipt, fact, notebook or page that is wrong."""
    from lanelab.publish.site.build import build as build_site

    if url is not None and not _is_site(url):
        raise UsageError(f"--url {url!r} is no address of a site (valid: https://HOST/PATH)", value=url)
    built = build_site(paths.root(), renderer=renderer, url=url, workers=workers, force=force, say=progress)
    lines = [f"not published: {name}: {why}" for name, why in built.skipped.items()]
    lines += [f"warning: {text}" for text in built.warnings]
    if built.unchanged:
        return Answer(built.data(), "\n".join([*lines, "nothing changed: the site that stands is the one", built.path]))
    what = f"{built.pages} pages of {len(built.campaigns)} campaigns by {built.renderer} in {built.seconds} s"
    done = f"{built.executed} of {built.notebooks} notebooks executed, the others unchanged"
    return Answer(built.data(), "\n".join([*lines, f"{what}; {done}", built.path]))


def _is_site(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(host) and not re.search(r"[\s<>\"'\\\x00-\x1f]", url)


@command("check", "lanelab site check")
def check() -> Answer:
    """Fail on a number that is no fact, a dead link, a picture without words, a secret; one line each."""
    from lanelab.publish.site.check import check as check_site

    findings = check_site(paths.root())
    errors = [finding for finding in findings if finding.severity == "error"]
    text = [finding.text() for finding in findings]
    text.append(f"{len(errors)} errors, {len(findings) - len(errors)} warnings")
    data = {"ok": not errors, "findings": [finding.data() for finding in findings]}
    return Answer(data, "\n".join(text), exit_code=1 if errors else 0)


for made in (build, check):
    site.add_command(made)
