"""Every other published number, by name: lossless, one row a leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lanelab.importers.mimo26.source import FOLDER, PublishedFolder, day, frame, slug
from lanelab.receipts import Receipt

_PREFIX = f"{FOLDER}/"


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """`(part, leaf)` of a value: list indices and keys joined by dots; a scalar has the part ""."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, str(index)))
    else:
        yield ".".join(path), value


def rows_of(collection: str, name: str, value: Any, **said: Any) -> list[dict[str, Any]]:
    """Rows of one published value; a text goes to `text`, a truth value to 1 or 0."""
    made = []
    for part, leaf in leaves(value):
        number = float(leaf) if isinstance(leaf, (int, float)) else None
        text = leaf if isinstance(leaf, str) else None
        made.append({"collection": collection, "name": name, "part": part, "value": number, "text": text, **said})
    return made


def recipe_facts(source: PublishedFolder) -> list[Receipt]:
    """facts.json: one receipt a source document, so that each number leads to its file."""
    by_path: dict[str, list[dict[str, Any]]] = {}
    for fact in source.json("facts.json")["facts"]:
        path = fact["source_path"]
        rows = rows_of("recipe", fact["key"], fact["value"], unit=fact["unit"], said_in=path, note=fact["note"])
        by_path.setdefault(path, []).extend(rows)
    made = []
    for path, rows in by_path.items():
        file, _, commit = path.partition("@")
        name = slug(file.removeprefix(_PREFIX).replace("results/", "").replace("receipts/", ""))
        made.append(
            frame(
                "figure",
                f"{name}-{commit[:8]}" if commit else name,
                rows,
                path=path,
                commits=(commit[:8],) if commit else _commits(file),
                dated=_dated(path),
            )
        )
    return made


def _commits(path: str) -> tuple[str, ...]:
    for piece, commits in (
        ("recipe.yaml", ("30e83055",)),
        ("card.yaml", ("34972a1a",)),
        ("longctx.md", ("c22bc263",)),
        ("harness-summary.md", ("6cd315c9",)),
        ("2026-09-22", ("66bebb58",)),
        ("2026-09-24", ("b929f9f5", "bb95d4f1")),
        ("2026-09-28", ("57111f17", "afdb4121")),
    ):
        if piece in path:
            return commits
    return ()


def _dated(path: str) -> str | None:
    for piece in ("2026-09-22", "2026-09-24", "2026-09-28"):
        if piece in path:
            return piece
    return {"afdb4121": "2026-09-28", "b929f9f5": "2026-09-24"}.get(path.partition("@")[2][:8])


def post_facts(source: PublishedFolder) -> list[Receipt]:
    """post-facts.json: one receipt a document and flag, so that predicted and measured numbers never share one."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for fact in source.json("post-facts.json")["facts"]:
        document = fact["source"].removeprefix("the ")
        old = fact["old_value"]
        rows = rows_of(
            document,
            fact["key"],
            fact["value"],
            unit=fact["unit"],
            flag=fact["flag"],
            used_in=fact["used_in"],
            said_in=fact["source"],
            corrected_on=fact["corrected_on"],
            old_value=None if old is None else str(old),
            note=fact["note"],
        )
        groups.setdefault((document, fact["flag"]), []).extend(rows)
    return [
        frame(
            "figure",
            f"{document}-{flag}",
            rows,
            path=None,
            note=f"from the campaign's public {document}, which bears no date in the text that was read; "
            f"flagged {flag} there or by the transcriber",
        )
        for (document, flag), rows in groups.items()
    ]


def medians(source: PublishedFolder) -> list[Receipt]:
    """The medians that the streamed prompt bench prints, one receipt a boot."""
    made = []
    for path in sorted((source.folder / "bench").glob("ttft-*.json")):
        rows = []
        for size, value in source.json(f"bench/{path.name}").items():
            printed = {key: item for key, item in value.items() if key != "runs"}
            rows += rows_of("medians", f"{path.stem}.{size}", printed)
        made.append(
            frame(
                "figure",
                f"medians-{path.stem}",
                rows,
                path=f"{FOLDER}/results/2026-09-22-hotsplit/receipts/{path.name}",
                commits=("66bebb58", "6cd315c9"),
                dated="2026-09-23" if "v24" in path.stem else "2026-09-22",
            )
        )
    return made


def tables(source: PublishedFolder) -> list[Receipt]:
    """Numbers that stand beside other tables: boots, profile summary, histogram summaries, the system."""
    boots = [
        row
        for boot in source.json("boots.json")["boots"]
        if boot["numbers"]
        for row in rows_of("boots", boot["version"], boot["numbers"], said_in=boot["source"])
    ]
    summary = [
        row
        for item in source.json("profiler.json")["summary_published"]
        for row in rows_of("profile", item["key"], {key: value for key, value in item.items() if key != "key"})
    ]
    layers = [
        row
        for layer, item in source.json("routing/expert_hist_8prompt.json").items()
        for row in rows_of("histogram", f"layer.{layer}", {k: v for k, v in item.items() if k != "counts"})
    ]
    system = source.json("system.json")
    at_22: dict[str, Any] = {"commits": ("66bebb58",), "dated": "2026-09-22"}
    results = f"{FOLDER}/results/2026-09-22-hotsplit"
    return [
        frame("figure", "boots", boots, path=FOLDER, note="numbers of the boot table, from the sources that each row names"),
        frame("figure", "profile-summary", summary, path=f"{results}/facts.md", boot="v21", **at_22),
        frame("figure", "expert-hist-layers", layers, path=f"{results}/expert_hist_8prompt.json",
              commits=("6cd315c9",), dated="2026-09-22"),
        frame("figure", "system", [row for key, item in system.items() for row in rows_of("system", key, item)],
              path=f"{results}/system.json", commits=("66bebb58", "30e83055", "afdb4121"),
              finished=day(system["collected_utc"].rstrip("Z"))),
    ]  # fmt: skip
