"""environment.yml, pyproject.toml and the constraints are one list."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _environment_module():
    spec = importlib.util.spec_from_file_location("environment", ROOT / "lib" / "dev" / "environment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_environment_yml_holds_every_requirement_with_its_range() -> None:
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(item["pip"] for item in conda["dependencies"] if isinstance(item, dict))
    listed = {canonicalize_name(r.name): r.specifier for r in map(Requirement, (p for p in pip if p != "-e ."))}
    wanted = [
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["mini"],
        *PROJECT["optional-dependencies"]["dev"],
    ]
    assert listed == {canonicalize_name(r.name): r.specifier for r in map(Requirement, wanted)}
    assert any(str(item).startswith("quarto") for item in conda["dependencies"])
    assert f"python{PROJECT['requires-python']}" in conda["dependencies"]


def test_environment_yml_is_what_would_be_written() -> None:
    module = _environment_module()
    assert (ROOT / "environment.yml").read_text() == module.environment_yml(PROJECT)
    changed = {**PROJECT, "dependencies": [*PROJECT["dependencies"], "another>=1"]}
    assert module.environment_yml(changed) != module.environment_yml(PROJECT)


def test_the_constraints_pin_every_requirement_inside_its_range() -> None:
    pins = {}
    for line in (ROOT / "lib" / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            pins[canonicalize_name(name)] = version
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *extras["mini"], *extras["dev"]]:
        requirement = Requirement(text)
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin), f"{text} is pinned to {pin}"


def test_every_requirement_says_why_it_is_there() -> None:
    for line in (ROOT / "pyproject.toml").read_text().splitlines():
        if (re.match(r'^  "[A-Za-z]', line) and "==" in line) or re.match(r'^  "[A-Za-z][\w.-]+[><=]', line):
            assert re.search(r"#\s+\S+", line), f"no reason given: {line.strip()}"


def test_torch_and_transformers_stand_where_the_embedded_lane_needs_them() -> None:
    mini = {r.name: r.specifier for r in map(Requirement, PROJECT["optional-dependencies"]["mini"])}
    assert str(mini["torch"]).startswith("==")
    assert not mini["transformers"].contains("5.16.9") and not mini["transformers"].contains("5.20.0")
    assert not {"torch", "transformers"} & {Requirement(text).name for text in PROJECT["dependencies"]}
