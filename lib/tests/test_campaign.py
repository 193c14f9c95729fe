"""The plan of a campaign: what it may say, and how its mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanelab import campaign
from lanelab.campaign import BadName
from lanelab.errors import BadFile, NotFound

PLAN = "name: box\ntitle: My box\nlane: mini\nsteps:\n  - step: 04-decode\n    parameters: {preset: quick}\n  - step: 01-x\n    lane: other\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "campaigns" / "box").mkdir(parents=True)
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path))
    return tmp_path / "data" / "campaigns"


def test_a_plan(lab: Path) -> None:
    (lab / "box" / "campaign.yaml").write_text(PLAN)
    found = campaign.load("box")
    assert campaign.names() == ["box"] and found.dir == lab / "box"
    assert [found.lane_of(step) for step in found.steps] == ["mini", "other"]
    assert found.step("04-decode").parameters == {"preset": "quick"}
    with pytest.raises(NotFound, match=r"'04-decod'; did you mean '04-decode'"):
        found.step("04-decod")


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("name: box", "name: other", None, "name"),
        ("title: My box", "title: My box\ncolour: red", 3, "colour"),
        ("step: 01-x", "step: 04-decode", 4, "steps"),
        ("step: 01-x", "step: ../x", 7, "steps.1.step"),
        ("lane: mini", "lane: [mini]", 3, "lane"),
        ("title: My box", "title: 'open", None, None),
        ("parameters: {preset: quick}", "parameters: quick", 6, "steps.0.parameters"),
    ],
)
def test_mistakes_are_named_by_file_line_and_field(lab: Path, old: str, new: str, line: int | None, field: str) -> None:
    (lab / "box" / "campaign.yaml").write_text(PLAN.replace(old, new))
    with pytest.raises(BadFile) as caught:
        campaign.load("box")
    assert "campaign.yaml" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.data["field"] == field and (line is None or caught.value.data["line"] == line)


@pytest.mark.parametrize("name", ["../box", "", "Box", "a/b", "-x", "x" * 65, "a b", ".."])
def test_a_name_is_a_folder_s_name(lab: Path, name: str) -> None:
    with pytest.raises(BadName):
        campaign.load(name)


def test_unknown(lab: Path) -> None:
    (lab / "box" / "campaign.yaml").write_text(PLAN)
    with pytest.raises(NotFound, match=r"unknown campaign 'bux'; did you mean 'box'\?"):
        campaign.load("bux")
    with pytest.raises(NotFound, match="make campaign"):
        campaign.load("here")
