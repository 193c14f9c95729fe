"""Make environment.yml from pyproject.toml: one list of dependencies, two forms.

    python lib/dev/environment.py           writes environment.yml
    python lib/dev/environment.py --check   exits 1 if it is not what would be written

conda brings Python, make and Quarto (which conda-forge packages whole); everything else comes from
PyPI with the ranges of pyproject.toml, so that both ways of setting up install the same versions.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("mini", "dev")  # `quarto` is left out: conda-forge has Quarto itself


def requirements(project: dict) -> list[str]:
    """All requirement strings, core first, then the extras in order."""
    found = list(project["dependencies"])
    for extra in EXTRAS:
        found += project["optional-dependencies"][extra]
    return found


def environment_yml(project: dict) -> str:
    """The text of environment.yml."""
    quarto = next(item for item in project["optional-dependencies"]["quarto"] if item.startswith("quarto-cli"))
    lines = [
        "# Made from pyproject.toml by lib/dev/environment.py; a test holds the two together.",
        f"name: {project['name']}",
        "channels: [conda-forge]",
        "dependencies:",
        f"  - python{project['requires-python']}",
        "  - pip",
        "  - make",
        f"  - {re.sub('^quarto-cli', 'quarto', quarto)}",
        "  - pip:",
        *(f'      - "{item}"' for item in requirements(project)),
        "      - -e .",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    target = ROOT / "environment.yml"
    text = environment_yml(project)
    if "--check" in sys.argv[1:]:
        same = target.exists() and target.read_text() == text
        if not same:
            print("environment.yml differs from pyproject.toml: run python lib/dev/environment.py", file=sys.stderr)
        return 0 if same else 1
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
