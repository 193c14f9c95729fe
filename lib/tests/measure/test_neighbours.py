"""The rest of the machine, accounted for."""

import os
import subprocess
import sys
import time
from typing import Any

from lanelab.measure import neighbours
from lanelab.measure.neighbours import Reading, busy_cores

SPIN = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"


def test_known_accounts() -> None:
    assert busy_cores(Reading(0.0, 100.0, 10.0), Reading(2.0, 105.0, 12.0)) == 1.5
    assert busy_cores(Reading(0.0, 100.0, 10.0), Reading(2.0, 101.0, 12.0)) == 0.0
    assert busy_cores(None, Reading(2.0, 1.0, 1.0)) is None


def test_the_listener_is_found_and_others_are_not_it(fake: Any) -> None:
    assert neighbours.server_pid(fake.url) == os.getpid()
    assert neighbours.server_pid("http://192.0.2.1:80/v1") is None
    assert neighbours.server_pid("http://127.0.0.1:1/v1") is None


def test_a_process_that_spins_counts_unless_it_is_the_servers() -> None:
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    spinner = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        time.sleep(0.3)
        before = neighbours.read(idle.pid), neighbours.read(spinner.pid)
        time.sleep(0.8)
        after = neighbours.read(idle.pid), neighbours.read(spinner.pid)
    finally:
        for child in (idle, spinner):
            child.kill()
            child.wait()
    beside, within = busy_cores(before[0], after[0]), busy_cores(before[1], after[1])
    assert beside is not None and within is not None
    assert beside > 0.1 and beside - within > 0.1
    assert neighbours.read(spinner.pid) is None
