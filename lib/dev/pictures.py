"""Take README's pictures of the built site with headless Chromium.

    python lib/dev/pictures.py        needs `make site` and a chromium on this machine

Each picture is the top of a page at a fixed size, so that it changes only when the page does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site" / "_site"
PICTURES = {
    "post": ("posts/mimo26-pro-gb300/index.html", 1180, 1000),
    "companion": ("posts/mimo26-pro-gb300/companion.html", 420, 1000),
    "measured": ("posts/mini/index.html", 1180, 1000),
}


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None or not SITE.is_dir():
        print("needs a Chromium on this machine and a built site (make site)", file=sys.stderr)
        return 1
    target = ROOT / "site" / "pictures"
    target.mkdir(exist_ok=True)
    for name, (page, width, height) in PICTURES.items():
        with tempfile.TemporaryDirectory() as profile:
            subprocess.run(
                [
                    browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                    "--disable-background-networking", "--disable-component-update", "--disable-sync",
                    f"--user-data-dir={profile}", f"--window-size={width},{height}",
                    f"--screenshot={target / name}.png", (SITE / page).as_uri(),
                ],
                check=True, capture_output=True, timeout=120,
            )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
