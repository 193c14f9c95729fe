"""The house rules: which room may import which, how long a module may be, what the core may import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

LIB = Path(__file__).resolve().parents[1]
PACKAGE = LIB / "lanelab"

# DESIGN's floors, ground first; on one floor a room may import those named before it.
FLOORS = [
    ["errors", "paths", "yamlfile", "receipts"],
    ["machine", "machine_here", "checkpoint", "recipe", "campaign", "stats"],
    ["memory", "routing", "planning"],
    ["lane", "preflight", "importers"],
    ["boot"],
    ["measure", "reference", "quality", "profiling", "mini"],
    ["publish", "notebook", "run"],
    ["cli"],
]
READS_RECEIPTS_ONLY = ("publish", 2)  # publish never measures: it imports floors 0 to 2


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def place(room: str) -> tuple[int, int]:
    for floor, rooms in enumerate(FLOORS):
        if room in rooms:
            return floor, rooms.index(room)
    raise AssertionError(f"{room} is no room of the house: name its floor in lib/tests/test_house.py")


def imports(path: Path) -> set[str]:
    """Rooms of lanelab that a module imports, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
            if node.module == "lanelab":
                names = [f"lanelab.{alias.name}" for alias in node.names if alias.name != "__version__"]
        found |= {name.split(".")[1] for name in names if name.startswith("lanelab.")}
    return found


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    here = place(room)
    for other in imports(path) - {room}:
        assert place(other) < here, f"{path.relative_to(LIB)} imports {other}, which stands above it"
        if room == READS_RECEIPTS_ONLY[0]:
            assert place(other)[0] <= READS_RECEIPTS_ONLY[1], f"publish imports {other}: it may only read receipts"


def test_the_import_rule_sees_a_forbidden_import(tmp_path: Path) -> None:
    bad = tmp_path / "x.py"
    bad.write_text("def f():\n    from lanelab.cli import main\n    from lanelab import measure\n")
    assert imports(bad) == {"cli", "measure"}
    assert place("cli") > place("receipts")


@pytest.mark.parametrize("path", [*MODULES, *sorted((LIB / "tests").rglob("*.py"))], ids=lambda p: p.name)
def test_no_module_is_over_600_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


def test_the_core_imports_without_torch() -> None:
    """Everything but reference, quality, profiling and mini, in a process where torch cannot be imported."""
    rooms = [room for floor in FLOORS for room in floor if room not in {"reference", "quality", "profiling", "mini"}]
    modules = [
        "lanelab." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for path in MODULES
        if room_of(path) in rooms
    ]
    program = (
        "import sys, importlib\n"
        "for name in ('torch', 'transformers'): sys.modules[name] = None\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *modules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
