"""Machines: figures with origins, and this machine measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanelab import machine, machine_here
from lanelab.errors import BadFile, NotFound
from lanelab.machine import Machine

MINIMAL = (
    "name: box\ntitle: A box\ncpu: {model: x, arch: x86_64}\nhost_gib: {value: 8, origin: nominal, source: label}\n"
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("campaigns", "machines"):
        (tmp_path / "data" / name).mkdir(parents=True)
    monkeypatch.setenv("LANELAB_ROOT", str(tmp_path))
    return tmp_path


def test_the_machines_that_come_with_the_lab() -> None:
    for name in set(machine.names()) - {machine.HERE}:
        box = machine.load(name)
        assert box.name == name
    assert machine.load("gb300").has_hbm
    assert not machine.load("cpu-2core").has_hbm


def test_unknown_machines(lab: Path) -> None:
    (lab / "data/machines/gb300.yaml").write_text(MINIMAL)
    with pytest.raises(NotFound, match="did you mean 'gb300'"):
        machine.load("gb330")
    with pytest.raises(NotFound, match="lanelab machine measure"):
        machine.load("here")
    for name in ("../machines/gb300", "/etc/passwd", ""):
        with pytest.raises(NotFound):
            machine.load(name)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("host_gib: {value: 8", "host_gib: {value: -8"), "greater than 0"),
        (("origin: nominal", "origin: guessed"), "host_gib.origin"),
        ((", source: label", ""), "host_gib.source"),
        (("title: A box", "titel: A box"), "titel|title"),
        (("value: 8", "value: .nan"), "host_gib.value"),
        (("name: box", "name: [1"), "not YAML"),
        (("title: A box", "title: A box\ntitle: twice"), "twice"),
    ],
)
def test_a_file_with_a_mistake(lab: Path, change: tuple[str, str], expected: str) -> None:
    (lab / "data/machines/box.yaml").write_text(MINIMAL.replace(*change))
    with pytest.raises(BadFile, match=expected) as caught:
        machine.load("box")
    assert "box.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_this_machine_is_measured_written_and_read_again(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_here, "_COPY_BYTES", 2**20)
    monkeypatch.setattr(machine_here, "copy_gib_s", lambda: 12.345)
    box = machine_here.measure()
    machine_here.write(box)
    assert machine.load("here") == box
    assert box.host_gib.origin == "measured"
    assert box.host_gib_s is not None and box.host_gib_s.value == pytest.approx(12.345, abs=0.006)
    assert 0 < box.host_gib.value < 1e5
    assert box.cpu.cores and box.cpu.cores >= 1


def test_a_copy_moves_bytes_at_a_plausible_speed() -> None:
    assert 0.1 < machine_here.copy_gib_s(repeats=1, size_bytes=2**22) < 10_000


def test_what_nvidia_smi_says() -> None:
    text = (
        "NVIDIA H200, GPU-1-2, 570.1, 143771, 700.00\n"
        "NVIDIA GB10, GPU-3, 580.1, [N/A], [N/A]\n"
        "No devices were found\n\n"
        "NVIDIA RTX 5090, GPU-4, 580.1, 32607, [N/A]\n"
    )
    first, second = machine_here.parse_gpus(text)
    assert first.hbm_gib.value == pytest.approx(140.4, abs=0.01)
    assert (first.uuid, first.driver, first.power_limit_w) == ("GPU-1-2", "570.1", 700.0)
    assert (second.name, second.power_limit_w) == ("NVIDIA RTX 5090", None)


def test_an_emulated_tier_is_labelled() -> None:
    box = Machine.model_validate(machine.load("cpu-2core").model_dump())
    assert box.emulated is None
    made = box.with_emulated_hbm(0.5, 2)
    assert made.emulated == "0.5 GiB HBM, link 2 GiB/s"
    assert made.hbm_gib == 0.5 and made.hbm_gib_s == box.host_gib_s.value
    assert not box.has_hbm
