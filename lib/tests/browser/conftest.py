"""A headless Chromium and a site for it to open: this checkout's if it is built, else the small lab's."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[3]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")


def _demo() -> ModuleType:
    name = "lanelab_site_demo"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, CHECKOUT / "lib" / "tests" / "site" / "conftest.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with chromedriver on this machine: pages are not opened")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--disable-background-networking", "--no-proxy-server",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.set_page_load_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site to open."""
    ours = CHECKOUT / "site" / "_site"
    if (ours / "index.html").is_file():
        return ours
    from lanelab.publish.site.build import build

    lab = _demo().make_lab(tmp_path_factory.mktemp("browser") / "lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANELAB_ROOT", str(lab.root))
        build(lab.root, renderer="fallback")
    return lab.folders.built


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def served(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site on a sub-path of a server on this machine, as Pages would serve it."""
    root = tmp_path_factory.mktemp("served")
    (root / "some").mkdir()
    (root / "some" / "where").symlink_to(site)
    handler = functools.partial(_Quiet, directory=str(root))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/some/where"
    server.shutdown()
    server.server_close()
