"""One look for all figures: colour-blind-safe, readable on a phone, light and dark in one SVG.

Figures are drawn by matplotlib in fixed colours; in the SVG each of those becomes a CSS variable
with a light and a dark value, so that one file serves both. Text stays text (searchable, selectable,
in the reader's font), identifiers come from the figure's name and nothing carries a date: the same
rows give the same bytes.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Okabe and Ito's palette (jfly.uni-koeln.de/color), light and dark tuned for contrast on the page.
INK, MUTED, GRID, PAPER = "#1b1f24", "#57606a", "#d5dadf", "#fffffe"
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, YELLOW, GREY = "#cc79a7", "#56b4e9", "#f0e442", "#8c959f"
SERIES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "\\\\\\", "---", "xxx", "++", "|||")

_VARIABLES = {  # drawn colour: (variable, light, dark)
    INK: ("ink", "#1b1f24", "#e6edf3"),
    MUTED: ("muted", "#57606a", "#9da7b3"),
    GRID: ("grid", "#d5dadf", "#363d46"),
    PAPER: ("paper", "#ffffff", "#0d1117"),
    BLUE: ("blue", "#0072b2", "#4aa8e0"),
    ORANGE: ("orange", "#c77f00", "#e69f00"),
    GREEN: ("green", "#008a65", "#2cc295"),
    VERMILION: ("vermilion", "#d55e00", "#ff8a3d"),
    PURPLE: ("purple", "#b35c8c", "#dd92b9"),
    SKY: ("sky", "#3f9fd6", "#56b4e9"),
    YELLOW: ("yellow", "#b8a800", "#f0e442"),
    GREY: ("grey", "#7d8590", "#a5aeb8"),
}

WIDTH_IN = 5.4  # 389 SVG units: type of 11 units is about 10 px on a phone of 390 px
SHOWN_PX = 640  # the widest it is shown; wider only makes the type too big
FONTS = ["DejaVu Sans"]  # measures the text; the page's font draws it
_CSS_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

_RC: dict[str, Any] = {
    "svg.fonttype": "none", "font.family": FONTS, "font.size": 11,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 8,
    "axes.labelsize": 10.5, "xtick.labelsize": 10, "ytick.labelsize": 10, "legend.fontsize": 10,
    "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "axes.edgecolor": MUTED,
    "xtick.color": INK, "ytick.color": INK, "axes.facecolor": "none", "figure.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.7, "axes.linewidth": 0.8,
    "lines.linewidth": 1.8, "lines.markersize": 6, "legend.frameon": False, "hatch.linewidth": 0.6,
    "errorbar.capsize": 3, "path.simplify": False, "text.parse_math": False, "text.usetex": False,
}  # fmt: skip
_LOCK = threading.RLock()


@contextmanager
def drawing(rows: int = 1, height_in: float = 2.9, **subplots: Any) -> Iterator[tuple[Any, list[Any]]]:
    """A figure and its axes (one above the other) in the lab's style; no global state is left behind."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with _LOCK, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(rows, 1, squeeze=False, **subplots)[:, 0]
        yield figure, list(axes)


def svg_of(figure: Any, name: str, alt: str) -> str:
    """The figure as one self-contained SVG that follows the reader's light or dark setting.

    `name` makes its identifiers (unique on a page), `alt` its title for screen readers.
    """
    import matplotlib

    buffer = io.StringIO()
    with _LOCK, matplotlib.rc_context({**_RC, "svg.hashsalt": name, "svg.id": None}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _finish(buffer.getvalue(), name, alt)


def png_of(figure: Any) -> bytes:
    """The figure in light colours for whoever cannot show SVG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    with _LOCK:
        canvas = FigureCanvasAgg(figure)
        canvas.print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def _finish(svg: str, name: str, alt: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    for drawn, (variable, _, _) in _VARIABLES.items():
        svg = svg.replace(drawn, f"var(--ll-{variable})")
    svg = re.sub(r" ?font-family: [^;\"]+;?", "", svg)  # the page's font, for all text
    svg = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", "", svg, flags=re.S)  # would style the whole page
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    width, height = float(box[1]), float(box[2])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" class="ll-figure" '
        f'role="img" aria-labelledby="{name}-alt" viewBox="0 0 {width:g} {height:g}" width="{SHOWN_PX}" '
        f'height="{round(SHOWN_PX * height / width)}" style="max-width:100%;height:auto;stroke-linejoin:round">\n'
        f'<title id="{name}-alt">{_escaped(alt)}</title>\n<style>\n{css()}\n</style>\n'
    )
    body = svg[svg.index(">", svg.index("<svg")) + 1 :].replace("\n\n", "\n")
    return head + "\n".join(line.rstrip() for line in body.strip().splitlines()) + "\n"


def css() -> str:
    """The variables, light and dark, of every figure; scoped to `.ll-figure`."""
    light = " ".join(f"--ll-{name}: {value};" for name, value, _ in _VARIABLES.values())
    dark = " ".join(f"--ll-{name}: {value};" for name, _, value in _VARIABLES.values())
    return (
        f".ll-figure {{ {light} font-family: {_CSS_FONT}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ .ll-figure {{ {dark} }} }}\n"
        f".quarto-light .ll-figure {{ {light} }}\n.quarto-dark .ll-figure {{ {dark} }}\n"
        f"@media print {{ .ll-figure.ll-figure {{ {light} }} }}"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
