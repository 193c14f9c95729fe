"""The façade: what a notebook sees in both modes."""

from __future__ import annotations

import pytest

from lanelab import notebook as lab
from lanelab.errors import NotFound
from lanelab.publish.say import LooseDigit


def test_publish_mode_measures_nothing_and_links_to_pages(bench, displayed, monkeypatch) -> None:
    monkeypatch.setenv("LANELAB_SITE", "1")
    bench.decode("decode-0001", [30.0, 31.0, 32.0])
    bench.facts("speed:\n  from: {kind: decode, where: {size: 1K}, value: decode_tok_s, stat: median}\n  digits: 1\n")
    book = lab.open("trial", step="04-decode", lane="mini", measure=False)
    assert book.measure("decode", preset="quick") is None
    book.figure_decode()
    book.table_decode()
    book.say("It runs at {speed}.")
    kinds = [next(iter(data)) for data, _ in displayed]
    assert kinds == ["image/svg+xml", "text/markdown", "text/markdown", "text/markdown", "text/markdown"]
    assert displayed[0][1]["alt"].startswith("at 1,024 prompt tokens decode runs at 31.0 tok/s")
    assert displayed[-1][0]["text/markdown"].startswith("It runs at [31.0 tok/s](/receipts/trial/decode-0001.html")


def test_in_a_plain_kernel_nothing_is_written_for_the_site(bench, displayed, monkeypatch) -> None:
    """JupyterLab has neither the site's pages nor Quarto's fences."""
    monkeypatch.delenv("LANELAB_SITE", raising=False)
    bench.decode("decode-0001", [30.0, 31.0, 32.0])
    bench.facts("speed:\n  from: {kind: decode, where: {size: 1K}, value: decode_tok_s, stat: median}\n  digits: 1\n")
    book = lab.open("trial", step="04-decode", lane="mini", measure=False)
    book.figure_decode()
    book.table_decode()
    book.say("It runs at {speed}.")
    shown = "\n".join(data.get("text/markdown", "") for data, _ in displayed)
    assert "31.0 tok/s" in shown and ":::" not in shown and "](/" not in shown


def test_a_book_reads_private_receipts_only_while_it_measures(bench, displayed) -> None:
    bench.decode("decode-0001", [30.0], visibility="private")
    lab.open("trial", lane="mini", measure=False).table_decode()
    lab.open("trial", lane="mini", measure=True).table_decode()
    assert "Nothing measured yet" in displayed[0][0]["text/markdown"]
    assert "30.0" in displayed[1][0]["text/markdown"]


def test_unknown_campaign_and_figure_are_named(bench) -> None:
    with pytest.raises(NotFound, match="unknown campaign 'trail'"):
        lab.open("trail", measure=False)
    with pytest.raises(NotFound, match="unknown figure 'kneee'; did you mean 'knee'"):
        lab.open("trial", measure=False).figure("kneee")


def test_a_typed_number_stops_the_notebook(bench) -> None:
    with pytest.raises(LooseDigit):
        lab.open("trial", measure=False).say("It is 3x faster.")


def test_every_exhibit_has_a_method_that_completes(bench, displayed) -> None:
    book = lab.open("trial", lane="mini", measure=False)
    names = [name for name in dir(book) if name.startswith(("figure_", "table_"))]
    assert {"figure_knee", "table_boots", "table_claims", "table_corrections"} <= set(names)
    for name in names:
        getattr(book, name)()
    assert len(displayed) == len(names)
    assert all(data["text/markdown"].startswith(("*N", "Nothing")) for data, _ in displayed)
    with pytest.raises(NotFound, match="unknown table 'kne'; did you mean 'knee'"):
        book.table_kne()
    with pytest.raises(AttributeError):
        book.nothing


def test_importing_the_facade_loads_neither_torch_nor_matplotlib() -> None:
    import subprocess
    import sys

    code = "import sys; from lanelab import notebook; print(sorted({'torch', 'matplotlib', 'lanelab.measure'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
