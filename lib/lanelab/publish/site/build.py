"""`make site`: receipts verified, facts evaluated, notebooks executed, pages rendered."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lanelab import campaign as campaigns
from lanelab.errors import NoSpace
from lanelab.publish.ledger import BrokenReceipt
from lanelab.publish.site import feed, here, includes, notebooks, render, unchanged
from lanelab.publish.site.config import SiteConfig, SiteFolders, measured
from lanelab.receipts import Store, read_receipt
from lanelab.receipts import verify as verification

_REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EFBIG}


@dataclass
class Built:
    """What a build made."""

    path: str
    renderer: str
    campaigns: list[str]
    skipped: dict[str, str]  # campaign: why it is not on the site
    pages: int
    notebooks: int
    executed: int
    seconds: float
    warnings: list[str] = field(default_factory=list)
    unchanged: bool = False  # nothing had to be built

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def build(
    lab: Path,
    *,
    renderer: str | None = None,
    url: str | None = None,
    workers: int = 2,
    force: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Built:
    """Build the whole site of a lab, unless the one that stands was built from the same (and no `force`).

    Raises what stops it: a broken receipt, a fact, a notebook, a page, a full disk.
    """
    try:
        return _build(lab, renderer, url, workers, force, say)
    except OSError as error:
        if error.errno in _REFUSED:
            raise NoSpace(error.filename or lab / "site", error.strerror or str(error)) from error
        raise


def _build(
    lab: Path, renderer: str | None, url: str | None, workers: int, force: bool, say: Callable[[str], None]
) -> Built:
    began = time.monotonic()
    folders = SiteFolders(lab)
    config = folders.config()
    if campaigns.HERE in config.campaigns and measured(folders.campaign(campaigns.HERE)):
        here.write_posts(folders)
    published, skipped = choose(folders, config)
    verify(folders)
    address = url or config.url
    key = unchanged.build_key(folders, config.campaigns, render.which(renderer), address)
    if not force and (noted := unchanged.stands(folders, key)):
        about = {name: value for name, value in noted.items() if name not in ("key", "tree")}
        seconds = round(time.monotonic() - began, 1)
        return Built(
            **{**about, "path": str(folders.built / "index.html")}, executed=0, seconds=seconds, unchanged=True
        )
    jobs = [job for name in published for job in notebooks.jobs_of(lab, name, folders.notebooks)]
    with ThreadPoolExecutor(max_workers=1) as beside:
        # kernels are processes of their own: they work while facts and receipts are written here
        executing = beside.submit(notebooks.execute_all, jobs, lab, folders.cache, say, workers)
        write_data(folders, published)
        executed = executing.result()
    sweep(folders, {job.target for job in jobs})
    includes.write(folders, config, published, skipped)
    days = {name: found[-1] for name in published if (found := campaign_dates(folders, name))}
    for name, day in days.items():
        includes.write_day(folders, name, day)
    say("rendering pages")
    rendering = render.render(folders, published, renderer=renderer, url=address)
    if address and days:
        feed.write(folders, days, address)
        feed.settle_sitemap(folders, max(days.values()))
    built = Built(
        path=str(folders.built / "index.html"),
        renderer=rendering.renderer,
        campaigns=published,
        skipped=skipped,
        pages=sum(1 for _ in folders.built.rglob("*.html")),
        notebooks=len(jobs),
        executed=executed,
        seconds=round(time.monotonic() - began, 1),
        warnings=rendering.warnings,
    )
    about = {
        name: value for name, value in built.data().items() if name not in ("path", "executed", "seconds", "unchanged")
    }
    unchanged.note(folders, key, about)
    return built


def choose(folders: SiteFolders, config: SiteConfig) -> tuple[list[str], dict[str, str]]:
    """The campaigns that can be published, and why the others cannot yet. Raises `NotFound`."""
    published, skipped = [], {}
    for name in config.campaigns:
        folder = folders.campaign(name)
        if name == campaigns.HERE and not (folder / "campaign.yaml").is_file():
            skipped[name] = "nothing is measured on this machine yet; `make campaign` measures it"
            continue
        campaigns.load(name)
        if not measured(folder):
            skipped[name] = f"no receipt yet; `lanelab campaign run {name}` measures it"
        elif not (folders.source / "posts" / name / "index.qmd").is_file():
            skipped[name] = f"no post yet at posts/{name}/index.qmd"
        else:
            published.append(name)
    return published, skipped


def verify(folders: SiteFolders) -> None:
    """Stop at a receipt of any campaign that does not verify, naming its file. Raises `BrokenReceipt`.

    Campaigns that are not published count too: a lab with one broken receipt is not to be built upon.
    """
    for campaign_dir in sorted(folders.campaign(campaigns.HERE).parent.iterdir()):
        for problem in verification.campaign(campaign_dir, extra=False) if campaign_dir.is_dir() else []:
            if problem.severity == "error":
                path = (
                    problem.path.relative_to(folders.lab) if problem.path.is_relative_to(folders.lab) else problem.path
                )
                raise BrokenReceipt(f"{path}: {problem.message}", path=str(path), why=problem.what)


def write_data(folders: SiteFolders, published: list[str]) -> None:
    """Facts, the receipts browser and the data files, made by the rest of `publish/`."""
    from lanelab.publish import data_links, receipts_pages, variables

    paths = [folders.campaign(name) for name in published]
    variables.write(folders.source, paths)
    receipts_pages.write(folders.source, paths)
    data_links.write(folders.source, paths)


def sweep(folders: SiteFolders, kept: set[Path]) -> None:
    """Remove executed notebooks that no plan asks for any more."""
    for path in sorted(folders.notebooks.rglob("*.ipynb")):
        if path not in kept:
            path.unlink()


def campaign_dates(folders: SiteFolders, name: str) -> list[str]:
    """The days on which a campaign's receipts were made, sorted; the site knows no other clock."""
    receipts = map(read_receipt, Store(folders.campaign(name)).paths())
    moments = [receipt.finished or receipt.started for receipt in receipts]
    return sorted({moment.date().isoformat() for moment in moments if moment})
