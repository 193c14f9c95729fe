"""Every kind of page in a real browser: opens, fits the screen, follows the scheme, logs nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)
_CONTRAST = """
const lum = c => { const f = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
  return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
const parse = t => { const m = t.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
const behind = e => { for (let n = e; n; n = n.parentElement) { const c = parse(getComputedStyle(n).backgroundColor);
  if (c[3] > .99) return c; } return parse(getComputedStyle(document.documentElement).getPropertyValue('--x') || 'rgb(255,255,255)'); };
const out = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) { const e = walk.currentNode.parentElement;
  if (!walk.currentNode.textContent.trim() || !e.checkVisibility() || e.closest('svg, script, style, .visually-hidden')) continue;
  const fg = parse(getComputedStyle(e).color), bg = behind(e);
  const a = lum(fg), b = lum(bg), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) out.push([ratio.toFixed(2), walk.currentNode.textContent.trim().slice(0, 40)]); }
return out;
"""


def kinds_of_pages(site: Path) -> list[str]:
    """Posts, and one page of every other folder: pages of one folder are made alike."""
    found: dict[str, str] = {}
    for path in sorted(site.rglob("*.html")):
        relative = path.relative_to(site)
        alone = relative.parts[0] == "posts" or len(relative.parts) == 1 or path.stem in ("index", "facts")
        found.setdefault(str(relative) if alone else str(relative.parent), str(relative))
    return sorted(set(found.values()))


def opened(browser, url: str, width: int = 1280, scheme: str = "light") -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(url)
    time.sleep(0.15)


def messages(browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.mark.parametrize("where", ["file", "server"])
def test_pages_open_without_console_errors(browser, site, served, where):
    messages(browser)
    base = site.as_uri() if where == "file" else served
    wrong = {}
    for page in kinds_of_pages(site):
        opened(browser, f"{base}/{page}")
        assert browser.title, page
        if logged := messages(browser):
            wrong[page] = logged
    assert wrong == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows(browser, site, served, width):
    wrong = {}
    for page in kinds_of_pages(site):
        opened(browser, f"{served}/{page}", width)
        wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        if wide > 0:
            wrong[page] = browser.execute_script(
                "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
                " && !e.closest('.cell-output-display, .sd-table, pre')).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"
            )
    assert wrong == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, site, served, scheme):
    wrong = {}
    for page in kinds_of_pages(site):
        opened(browser, f"{served}/{page}", scheme=scheme)
        if faint := browser.execute_script(_CONTRAST):
            wrong[page] = faint[:5]
    assert wrong == {}


def background(browser) -> int:
    """The page's lightness, 0 to 255."""
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    return sum(colour[:3]) // 3


def figure_scheme(browser) -> set[str]:
    return set(
        browser.execute_script(
            "return [...document.querySelectorAll('main img[src$=\".svg\"]')].map(i => getComputedStyle(i).colorScheme)"
        )
    )


def test_scheme_follows_the_system_then_the_toggle(browser, site, served):
    page = next(name for name in kinds_of_pages(site) if name.startswith("posts/") and name.endswith("index.html"))
    opened(browser, f"{served}/{page}", scheme="dark")
    browser.execute_script("localStorage.clear()")
    for scheme, dark in (("light", False), ("dark", True)):
        opened(browser, f"{served}/{page}", scheme=scheme)
        assert (background(browser) < 100) == dark
    toggle = browser.find_element("css selector", ".quarto-color-scheme-toggle")
    toggle.click()
    time.sleep(0.2)
    assert background(browser) > 200, "the toggle wins over the system"
    opened(browser, f"{served}/{page}", scheme="dark")
    assert background(browser) > 200, "and is remembered"
    browser.execute_script("localStorage.clear()")


def shade_of_first_figure(browser) -> float:
    """Mean lightness of the first SVG figure as it is painted."""
    import io

    from matplotlib import image

    element = browser.find_element("css selector", "main img[src$='.svg']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    time.sleep(0.2)
    return float(image.imread(io.BytesIO(element.screenshot_as_png), format="png")[..., :3].mean())


def test_figures_follow_the_scheme(browser, site, served):
    pages = [
        p
        for p in kinds_of_pages(site)
        if "<img" in (site / p).read_text("utf-8") and ".svg" in (site / p).read_text("utf-8")
    ]
    assert pages, "no page shows a figure"
    opened(browser, f"{served}/{pages[0]}", scheme="light")
    browser.execute_script("localStorage.clear()")
    opened(browser, f"{served}/{pages[0]}", scheme="light")
    light = shade_of_first_figure(browser)
    # the header may have rolled out of sight with the page
    browser.execute_script("document.querySelector('.quarto-color-scheme-toggle').click()")
    time.sleep(0.3)
    dark = shade_of_first_figure(browser)
    browser.execute_script("localStorage.clear()")
    assert light > 0.7 and dark < 0.35, (light, dark)


@pytest.mark.parametrize("where", ["file", "server"])
def test_search_finds_a_page(browser, site, served, where):
    messages(browser)
    opened(browser, f"{site.as_uri() if where == 'file' else served}/index.html")
    box = browser.find_element("css selector", "#quarto-search input, .smalldocs-search input")
    box.send_keys("methods")
    deadline = time.monotonic() + 5
    while not (hits := browser.find_elements("css selector", ".search-result")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert hits and messages(browser) == []


def test_page_without_scripts_is_whole(browser, site, served):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, f"{served}/index.html", scheme="dark")
        text = browser.find_element("css selector", "main").text
        assert "receipt" in text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert (site / "index.html").is_file()
