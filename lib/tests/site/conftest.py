"""A small lab with one campaign, one notebook and two posts, to build and to break."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lanelab.publish.site.config import SiteFolders
from lanelab.receipts import Receipt, Store

CHECKOUT = Path(__file__).parents[3]
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 200" role="img"><style>'
    ":root{--ink:#222;--paper:#fff}@media (prefers-color-scheme: dark){:root{--ink:#eee;--paper:#111}}"
    "</style><rect width='400' height='200' style='fill:var(--paper)'/>"
    "<path d='M20 180 L200 60 L380 50' style='stroke:var(--ink);fill:none;stroke-width:3'/></svg>"
)
POST = """---
title: "A demo campaign"
subtitle: "Speed over streams on a demo lane"
date: 2026-01-02
answer: "The knee stands at {{< var demo.knee >}}."
---

::: {.status}
[measured]{.badge .measured} on 2026-01-02, lane `demo`
:::

The knee stands at {{< var demo.knee >}}; @fig-knee shows why, and @tbl-knee has the rows.

## What was measured

{{< embed ../../notebooks-out/demo/04-decode.ipynb#fig-knee >}}

{{< embed ../../notebooks-out/demo/04-decode.ipynb#say-knee >}}

{{< embed ../../notebooks-out/demo/04-decode.ipynb#tbl-knee >}}

::: {.callout-note title="What is meant"}
A callout with *words* and `code 12`.
:::

## What was not measured {#sec-not}

Nothing else. See [the companion](companion.qmd).
"""
COMPANION = """---
title: "A demo campaign, in plain words"
date: 2026-01-02
---

More streams share the work until they wait for each other, as @fig-knee shows.

{{< embed ../../notebooks-out/demo/04-decode.ipynb#fig-knee >}}

The lab log is [here](index.qmd).
"""


def notebook(*cells: Any) -> Any:
    """A source notebook of those cells."""
    return nbformat.v4.new_notebook(cells=list(cells), metadata={"lanelab": {"step": "04-decode", "workloads": []}})


def code(source: str, id_: str, *tags: str) -> Any:
    return nbformat.v4.new_code_cell(source, id=id_, metadata={"tags": list(tags)})


def demo_notebook() -> Any:
    return notebook(
        nbformat.v4.new_markdown_cell("# Decode\n\nSpeed over streams.", id="title"),
        code('campaign = "here"\nlane = "mini"\nmeasure = True', "parameters", "parameters"),
        code('assert measure is False, "a published notebook never measures"\nimport time; started = time.time()', "guard"),
        code(
            "#| label: fig-knee\n#| fig-cap: Speed over streams.\n"
            "from IPython.display import display\n"
            f"display({{'image/svg+xml': {SVG!r}, 'text/plain': 'alt'}}, raw=True,"
            " metadata={'alt': 'Speed grows, then stays flat.'})\n"
            "display({'text/markdown': 'Data: [CSV](/data/demo/fig-knee.csv). Again: `lanelab measure knee`'}, raw=True,"
            " metadata={'exhibit': 'data knee'})",
            "fig-knee-cell", "parent", "companion",
        ),
        code(
            "#| label: say-knee\nfrom IPython.display import display\n"
            "display({'text/markdown': 'The receipt is [8 streams]"
            "(/receipts/demo/knee-0001.html \"measured\"){.fact .measured}.'}, raw=True)",
            "say-knee-cell", "parent",
        ),
        code(
            "#| label: tbl-knee\n#| tbl-cap: Every row.\nfrom IPython.display import display\n"
            "display({'text/markdown': '| streams | tok/s |\\n|---:|---:|\\n| 1 | 10.5 |\\n| 8 | 42.0 |'}, raw=True)",
            "tbl-knee-cell", "parent",
        ),
    )  # fmt: skip


@dataclass
class DemoLab:
    """The small lab and the way to its files."""

    root: Path

    @property
    def folders(self) -> SiteFolders:
        return SiteFolders(self.root)

    def post(self, name: str = "index") -> Path:
        return self.root / "site" / "posts" / "demo" / f"{name}.qmd"

    def add_receipt(self, receipt_id: str, **given: Any) -> None:
        Store(self.folders.campaign("demo")).write(knee_receipt(receipt_id, **given))

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def line_of(self, path: Path, text: str) -> int:
        return next(n for n, line in enumerate(path.read_text("utf-8").splitlines(), 1) if text in line)


def knee_receipt(receipt_id: str = "knee-0001", **given: Any) -> Receipt:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    rows = [
        {"streams": streams, "aggregate_tok_s": speed, "ok": streams, "failed": 0}
        for streams, speed in ((1, 10.5), (8, 42.0))
    ]
    return Receipt(
        id=receipt_id, kind="knee", origin="measured", campaign="demo", lane="demo", step="04-decode",
        started=moment, finished=moment, rows=rows, **given,
    )  # fmt: skip


def make_lab(root: Path) -> DemoLab:
    """Write the whole small lab below `root`."""
    campaign = root / "data" / "campaigns" / "demo"
    campaign.mkdir(parents=True)
    (campaign / "campaign.yaml").write_text(
        "name: demo\ntitle: A demo campaign\nlane: demo\nsteps:\n  - step: 04-decode\n", encoding="utf-8"
    )
    (campaign / "facts.yaml").write_text(
        "knee:\n  from: {kind: knee, where: {}, value: streams, stat: max}\n  unit: streams\n  digits: 0\n"
        "  says: streams with the best aggregate speed\n",
        encoding="utf-8",
    )
    Store(campaign).write(knee_receipt())
    (root / "notebooks").mkdir()
    nbformat.write(demo_notebook(), str(root / "notebooks" / "04-decode.ipynb"))
    site = root / "site"
    ours = CHECKOUT / "site"
    site.mkdir()
    for name in ("_quarto.yml", "index.qmd"):
        shutil.copy(ours / name, site / name)
    shutil.copytree(ours / "styles", site / "styles")
    for name in ("methods", "docs"):
        (site / name).mkdir()
        (site / name / "index.qmd").write_text(
            f"---\ntitle: {name.title()}\n---\n\nHow it is done.\n", encoding="utf-8"
        )
    (site / "site.yaml").write_text("campaigns: [demo]\n", encoding="utf-8")
    (site / "posts" / "demo").mkdir(parents=True)
    (site / "posts" / "demo" / "index.qmd").write_text(POST, encoding="utf-8")
    (site / "posts" / "demo" / "companion.qmd").write_text(COMPANION, encoding="utf-8")
    return DemoLab(root)


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> DemoLab:
    """The small lab, built by the fallback; never changed."""
    from lanelab.publish.site.build import build

    lab = make_lab(tmp_path_factory.mktemp("built") / "lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANELAB_ROOT", str(lab.root))
        build(lab.root, renderer="fallback")
    return lab


@pytest.fixture
def demo_lab(built_once: DemoLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoLab:
    """A built small lab of the test's own, to change."""
    shutil.copytree(built_once.root, tmp_path / "lab")
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path / "lab"))
    return DemoLab(tmp_path / "lab")
