"""A file that a user wrote wrongly is named by file, line and field; one that attacks is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from lanelab.errors import BadFile
from lanelab.yamlfile import read_yaml


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    step: str


class Plan(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    steps: list[Step] = []


BOMB = "\n".join(
    ["a: &a [x, x, x]", *(f"{b}: &{b} [*{a}, *{a}, *{a}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))]
)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("name: [x\n", None, "is not YAML"),
        ("name: x\nname: y\n", 2, "this key stands twice"),
        ("name: x\nstep: y\n", 2, r"Extra inputs are not permitted \(valid: name, steps\)"),
        ("name: x\nsteps:\n  - step: a\n  - step: 7\n", 4, "should be a valid string"),
        ("a: &a\n  b: *a\n", 2, "aliases such as"),
        (BOMB, 2, "aliases such as"),
        ("name: 2001-99-99\n", None, "month must be in"),
        ("[" * 5000, None, "YAML"),
        ("- name\n", None, "must be a mapping"),
        ("", None, "must be a mapping"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, line: int | None, why: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(BadFile, match=why) as caught:
        read_yaml(path, Plan)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    if line is not None:
        assert caught.value.data["line"] == line


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"name: \xff\xfe")
    for name, why in (("binary.yaml", "UTF-8"), ("none.yaml", "cannot be read"), (".", "cannot be read")):
        with pytest.raises(BadFile, match=why):
            read_yaml(tmp_path / name, Plan)
