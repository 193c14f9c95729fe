"""The published campaign: the tracked receipts hold what was published, to the digit, and nothing else."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from lanelab.errors import BadFile
from lanelab.importers.mimo26 import collect, import_into
from lanelab.importers.mimo26.boots import outcome
from lanelab.importers.mimo26.collect import Differs
from lanelab.importers.mimo26.figures import leaves
from lanelab.receipts import Receipt, Store
from lanelab.receipts.canonical import digest_of

ROOT = Path(__file__).parents[3]
CAMPAIGN = ROOT / "data" / "campaigns" / "mimo26-pro-gb300"
SOURCE = ROOT.parent / "shared" / "published" / "mimo26-pro-gb300"
needs_source = pytest.mark.skipif(not SOURCE.is_dir(), reason="the published figures are not beside this checkout")


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(CAMPAIGN)


@pytest.fixture(scope="module")
def tracked(store: Store) -> dict[str, Receipt]:
    """The imported receipts; the lab's own plan for this campaign is none of them."""
    return {path.stem: store.read(path.stem) for path in store.paths() if path.parent.name != "plan"}


def rows_of(store: Store, tracked: dict[str, Receipt], kind: str) -> dict[str, list[dict[str, Any]]]:
    return {name: store.rows(receipt) for name, receipt in tracked.items() if receipt.kind == kind}


def source_json(name: str) -> Any:
    return json.loads((SOURCE / name).read_text(), parse_constant=lambda _: None)


# --- what a clean clone can check


def test_every_receipt_is_published_or_derived_and_cites_its_source(tracked: dict[str, Receipt]) -> None:
    assert Counter(receipt.origin for receipt in tracked.values()) == {"published": 140, "derived": 4}
    for receipt in tracked.values():
        assert receipt.digest == digest_of(receipt.body())
        cited = receipt.source.citation or ""
        assert "J. Meadlock and Milo, J&M Recipes, J-M-Recipes/recipes" in cited and "MIT" in cited
        assert receipt.source.path or receipt.source.note, receipt.id
        assert receipt.environment.client == {}  # nothing of the machine that imported them


def test_counts_of_rows_are_those_of_the_source(store: Store, tracked: dict[str, Receipt]) -> None:
    found = {
        kind: sum(len(store.rows(receipt)) for receipt in tracked.values() if receipt.kind == kind)
        for kind in {receipt.kind for receipt in tracked.values()}
    }
    assert found["decode"] == 7 * 9
    assert found["knee"] == 5 * 6
    assert (found["agent"], found["agent-task"]) == (10 * 16, 10 * 5)
    assert found["needle"] == 16 + 8 + 8 + 4
    assert found["boot"] == 27
    assert found["profile"] == 100
    assert found["routing-counts"] == 3 * 26_496


@pytest.mark.parametrize(
    ("name", "picks"), [("hist-8prompt", 24_088), ("live-mhot", 833_584), ("live-rlhot", 1_096_088)]
)
def test_every_layer_has_the_published_number_of_picks(store: Store, name: str, picks: int) -> None:
    by_layer: Counter[int] = Counter()
    experts: Counter[int] = Counter()
    for row in store.rows(store.read(f"routing-counts-{name}")):
        by_layer[row["layer"]] += row["picks"]
        experts[row["layer"]] += 1
    assert dict(by_layer) == dict.fromkeys(range(1, 70), picks)
    assert dict(experts) == dict.fromkeys(range(1, 70), 384)


def test_known_figures_of_known_boots(store: Store) -> None:
    (v22,) = store.rows(store.read("boot-v22"))
    assert (v22["kv_tokens"], v22["kv_gib"], v22["offloaded_gib"]) == (302_368, 15.82, 321.75)
    assert v22["max_concurrency"] == 1.15
    (v1,) = store.rows(store.read("boot-v1"))
    assert {key for key, value in v1.items() if value is not None} == {"version", "ordinal"}
    (v19,) = store.rows(store.read("boot-v19"))
    assert (v19["outcome"], v19["host_avail_gib"]) == ("oom_host_killed", 2.6)
    (gate,) = store.rows(store.read("quality-ctrl-v23"))
    assert (gate["flips"], gate["positions"], round(100 * gate["flip_share"], 3)) == (987, 80_384, 1.228)


def test_rows_beside_another_client_are_labelled_contended(store: Store, tracked: dict[str, Receipt]) -> None:
    mixed = tracked["needle-v23-contended"]
    assert mixed.labels.state == "contended" and mixed.labels.evidence["contended"]
    for name, rows in rows_of(store, tracked, "needle").items():
        assert {row["row_state"] == "contended" for row in rows} == {name == "needle-v23-contended"}


def test_derived_coverage_reproduces_what_was_published(store: Store) -> None:
    """Two ways to one number: the published share and ours from the published counts."""
    ours = {
        (row["ranking"], row["traffic"], row["hot_cells"]): row["share"]
        for row in store.rows(store.read("coverage-derived-budgets"))
    }
    published = [row for row in store.rows(store.read("coverage-portability")) if "mixed" not in row["ranking"]]
    assert len(published) == 3
    for row in published:
        mine = ours[row["ranking"], row["traffic"], row["hot_cells"]]
        assert mine == pytest.approx(row["share"], abs=1e-15), row
    assert ours["layers", "live-mhot", 8064] == ours["layers", "live-rlhot", 8064] == 21 / 69
    for receipt in ("coverage-derived-budgets", "coverage-derived-curve", "overlap-derived"):
        sources = store.read(receipt).parameters["from"]
        assert all(store.read(name).kind == "routing-counts" for name in sources)


# --- what needs the published figures


@needs_source
def test_importing_again_changes_no_byte(tmp_path: Path) -> None:
    before = {
        path: path.read_bytes() for path in sorted((CAMPAIGN / "receipts").glob("*/*")) if path.parent.name != "plan"
    }
    fresh, _ = import_into(SOURCE, tmp_path)
    assert len(fresh) == sum(path.suffix == ".json" for path in before)
    for path, content in before.items():
        if path.suffix == ".json" and b".parquet" not in content:
            assert (tmp_path / "receipts" / path.parent.name / path.name).read_bytes() == content, path.name
    written, stood = import_into(SOURCE, tmp_path)
    assert (written, len(stood)) == ([], len(fresh))
    assert {receipt.id for receipt in collect(SOURCE)} == {path.stem for path in before if path.suffix == ".json"}


@needs_source
def test_a_receipt_that_differs_is_refused_not_overwritten(tmp_path: Path) -> None:
    changed = tmp_path / "figures"
    shutil.copytree(SOURCE, changed)
    import_into(SOURCE, tmp_path / "campaign")
    knee = changed / "bench" / "knee-v14.json"
    knee.chmod(0o644)
    knee.write_text(knee.read_text().replace("56.2", "57.2"))
    with pytest.raises(Differs, match="knee-v14"):
        import_into(changed, tmp_path / "campaign")


@needs_source
@pytest.mark.parametrize(
    ("file", "collections"), [("facts.json", {"recipe"}), ("post-facts.json", {"post", "companion"})]
)
def test_every_figure_is_kept(store: Store, tracked: dict[str, Receipt], file: str, collections: set[str]) -> None:
    kept: dict[str, dict[str, Any]] = defaultdict(dict)
    said: dict[str, dict[str, Any]] = {}
    for rows in rows_of(store, tracked, "figure").values():
        for row in rows:
            if row["collection"] in collections:
                kept[row["name"]][row["part"]] = row["text"] if row["text"] is not None else row["value"]
                said[row["name"]] = row
    facts = source_json(file)["facts"]
    assert len(facts) == {"facts.json": 209, "post-facts.json": 251}[file]
    for fact in facts:
        assert kept[fact["key"]] == dict(leaves(fact["value"])), fact["key"]
        row = said[fact["key"]]
        assert (row["unit"], row["note"]) == (fact["unit"], fact["note"])
        if file == "post-facts.json":
            old = None if fact["old_value"] is None else str(fact["old_value"])
            assert (row["flag"], row["corrected_on"], row["old_value"]) == (fact["flag"], fact["corrected_on"], old)
    assert len(kept) == len(facts)


@needs_source
def test_every_benchmark_number_is_kept(store: Store) -> None:
    for path in sorted((SOURCE / "bench").glob("ttft-*.json")):
        rows = store.rows(store.read(f"decode-{path.stem.removeprefix('ttft-')}"))
        nominal = store.read(f"decode-{path.stem.removeprefix('ttft-')}").parameters["nominal_sizes"]
        for size, value in source_json(f"bench/{path.name}").items():
            mine = [row for row in rows if nominal[row["size"]] == int(size)]
            assert [[row["ttft_s"], row["decode_tok_s"]] for row in mine] == value["runs"]
            medians = store.rows(store.read(f"figure-medians-{path.stem}"))
            printed = {row["part"]: row["value"] for row in medians if row["name"] == f"{path.stem}.{size}"}
            assert printed == {key: item for key, item in value.items() if key != "runs"}
            assert {row["prompt_tokens"] for row in mine} == {value["prompt_tokens"]}
    for path in sorted((SOURCE / "bench").glob("knee-*.json")):
        rows = store.rows(store.read(f"knee-{path.stem.removeprefix('knee-')}"))
        for row, value in zip(rows, source_json(f"bench/{path.name}")["rows"], strict=True):
            given = list(value.values()) if isinstance(value, dict) else [*value, []]
            assert [row["streams"], row["aggregate_tok_s"], row["per_stream_tok_s"], row["runs_tok_s"]] == given
    for path in sorted((SOURCE / "bench").glob("agentfix-*.json")):
        tag = path.stem.removeprefix("agentfix-")
        turns, tasks = store.rows(store.read(f"agent-{tag}")), store.rows(store.read(f"agent-task-{tag}"))
        for task, value in source_json(f"bench/{path.name}")["res"].items():
            mine = [row for row in turns if row["task"] == task]
            assert [[row["completion_tokens"], row["seconds_s"], row["finish"], row["tool_call"]] for row in mine] == [
                sample[:4] for sample in value["samples"]
            ]
            (total,) = [row for row in tasks if row["task"] == task]
            names = ("tok_s", "accept_rate", "accept_per_step", "completion_tokens", "server_tokens")
            keys = ("tok_s", "accept", "acc_per_step", "tokens", "gen_metric")
            assert [total[name] for name in names] == [value[key] for key in keys]
    long = [row for name in ("v23", "v23-contended", "v23b", "v24") for row in store.rows(store.read(f"needle-{name}"))]
    given = [
        json.loads(line)
        for name in ("v23", "v23b", "v24")
        for line in (SOURCE / "bench" / f"longctx-{name}.jsonl").read_text().splitlines()
    ]
    same = {"size_tokens": "size", "passed": "pass_", "answer": "text", "task": "kind"}
    for row, value in zip(long, given, strict=True):
        for name in ("prompt_tokens", "ttft_s", "decode_tok_s", "completion_tokens", "depth", "code", *same):
            assert row[name] == value.get(same.get(name, name))


@needs_source
def test_every_boot_profile_line_and_count_is_kept(store: Store) -> None:
    boots = source_json("boots.json")["boots"]
    for boot in boots:
        (row,) = store.rows(store.read(f"boot-{boot['version']}"))
        for name in (
            "change",
            "load_format",
            "moe_backend",
            "patches",
            "offload_gb",
            "hot_gib",
            "max_model_len",
            "reason",
        ):
            assert row[name] == boot[name], (boot["version"], name)
        assert (row["outcome_said"], row["when_said"]) == (boot["outcome"], boot["when"])
        assert row["outcome"] == outcome(boot["outcome"])
    assert store.rows(store.read("profile-v21")) == source_json("profiler.json")["rows"]
    kept = {
        (row["name"], row["part"]): row["text"] if row["text"] is not None else row["value"]
        for name in ("boots", "profile-summary", "expert-hist-layers", "system")
        for row in store.rows(store.read(f"figure-{name}"))
    }
    for boot in boots:
        for part, value in leaves(boot["numbers"] or {}):
            assert kept[boot["version"], part] == value
    for key, item in source_json("system.json").items():
        for part, value in leaves(item):
            assert kept[key, part] == value
    for name, file in (
        ("hist-8prompt", "expert_hist_8prompt"),
        ("live-mhot", "live-counts-mhot"),
        ("live-rlhot", "live-counts-rlhot"),
    ):
        value = source_json(f"routing/{file}.json")
        layers = value["live"]["decode"] if "live" in value else {key: item["counts"] for key, item in value.items()}
        mine: dict[str, list[int]] = defaultdict(list)
        for row in store.rows(store.read(f"routing-counts-{name}")):
            mine[str(row["layer"])].append(row["picks"])
        assert mine == layers


def test_a_folder_without_figures_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"facts\.json"):
        collect(tmp_path)
    (tmp_path / "facts.json").write_text("{")
    with pytest.raises(BadFile):
        collect(tmp_path)


@pytest.mark.parametrize(
    ("said", "class_"),
    [(None, None), ("sane", "serving"), ("garbage (same string)", "garbage"), ("OOM-killed during the split", "oom_host_killed"),
     ("slower", "serving"), ("something new", "unknown")],
)  # fmt: skip
def test_outcomes_are_classed_without_inventing_any(said: str | None, class_: str | None) -> None:
    assert outcome(said) == class_
