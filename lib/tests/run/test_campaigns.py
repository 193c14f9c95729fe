"""A campaign's plan: what runs, what stays, and why; on a lane that a thread of this test serves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from lanelab import campaign as plans
from lanelab import lane as lanes
from lanelab.measure import WORKLOADS
from lanelab.receipts import Receipt, RecipeRef, Source, Store, key_of, new_id
from lanelab.run import freshness, record
from lanelab.run.campaigns import choose

from .conftest import Call, record_of

MEASURE = """
import os
from datetime import UTC, datetime
from pathlib import Path
from lanelab.measure import WORKLOADS
from lanelab.receipts import Receipt, Source, Store, new_id
work = WORKLOADS["decode"]
now = datetime.now(UTC)
Store(Path(os.environ["LANELAB_ROOT"]) / "data/campaigns" / campaign).write(Receipt(
    id=new_id("decode", now), kind="decode", origin="measured", campaign=campaign, machine="here", model="toy",
    lane=lane, step=os.environ["LANELAB_STEP"], run=os.environ["LANELAB_RUN"], started=now, finished=now,
    parameters=work.resolve(preset), source=Source(workload="decode", workload_version=work.version)))
if fail:
    raise RuntimeError("after the receipt was written")
"""


class Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"object": "list", "data": [{"id": "toy", "object": "model"}], "version": "1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def notebook(path: Path, step: str, workloads: list[str], code: str, comment: str = "") -> None:
    cells = [
        nbformat.v4.new_code_cell(
            'campaign = "here"\nlane = "toy"\nmeasure = True\npreset = "quick"\nfail = False', id="parameters",
            metadata={"tags": ["parameters"]},
        ),
        nbformat.v4.new_code_cell(code + comment, id="work"),
    ]  # fmt: skip
    made = nbformat.v4.new_notebook(cells=cells, metadata={"lanelab": {"step": step, "workloads": workloads}})
    path.mkdir(exist_ok=True)
    nbformat.write(made, path / f"{step}.ipynb")


def plan(lab: Path, **changes: Any) -> None:
    steps = [{"step": "02-count", "parameters": {}}, {"step": "04-decode", "parameters": {"preset": "quick"}}]
    value = {"name": "box", "title": "Box", "model": "toy", "machine": "here", "lane": "toy", "steps": steps, **changes}
    folder = lab / "data" / "campaigns" / "box"
    folder.mkdir(exist_ok=True)
    (folder / "campaign.yaml").write_text(yaml.safe_dump(value))


@pytest.fixture
def box(lab: Path, server: ThreadingHTTPServer) -> Path:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    (lab / "data/lanes/toy.yaml").write_text(
        yaml.safe_dump({"name": "toy", "kind": "attach", "says": "toy", "url": url})
    )
    notebook(lab / "notebooks", "02-count", [], "print(1 + 1)")
    notebook(lab / "notebooks", "04-decode", ["decode"], MEASURE)
    plan(lab)
    return lab


def states(call: Call) -> dict[str, dict[str, Any]]:
    code, answer, _ = call("campaign", "status", "box")
    assert code == 0
    return {step["step"]: step for step in answer["steps"]}


def test_the_life_of_a_campaign(box: Path, call: Call, server: ThreadingHTTPServer) -> None:
    assert {step["state"] for step in states(call).values()} == {"missing"}
    code, answer, err = call("campaign", "run", "box")
    assert code == 0 and set(answer["ran"]) == {"02-count", "04-decode"} and not answer["lanes_started"]
    assert "decode has no receipt" in err
    run = answer["ran"]["04-decode"]
    assert len(run["receipts"]) == 1
    kept = record_of(run)
    assert [item["workload"] for item in kept["measures"]] == ["decode"] and kept["render"]["key"]
    receipt = Store(box / "data/campaigns/box").read(run["receipts"][0])
    assert key_of(receipt)[0] == kept["measures"][0]["key"]

    server.shutdown()
    server.server_close()
    began = time.monotonic()
    code, answer, err = call("campaign", "run", "box")
    assert code == 0 and answer["nothing_to_do"] and answer["fresh"] == ["02-count", "04-decode"]
    assert "nothing to run" in err and time.monotonic() - began < 10

    notebook(box / "notebooks", "04-decode", ["decode"], MEASURE, "\n# a changed comment")
    assert states(call)["04-decode"]["state"] == "fresh"

    plan(box, steps=[{"step": "04-decode", "parameters": {"preset": "full"}}])
    found = states(call)["04-decode"]
    assert found["state"] == "stale" and any("sizes" in why or "size" in why for why in found["why"])
    code, answer, err = call("campaign", "run", "box")
    assert code == 0 and not answer["ran"] and set(answer["stale"]) == {"04-decode"} and "--rerun 04-decode" in err

    code, answer, err = call("campaign", "run", "box", "--rerun", "04-decode")
    assert code == 1 and "lane minutes" in err and "toy" in answer["not_run"]["04-decode"], "its lane is down"
    code, answer, _ = call("campaign", "run", "box", "--rerun", "04-decod")
    assert code == 1 and "did you mean '04-decode'" in answer["error"]["message"]


def test_a_preset_that_is_asked_for_is_measured(box: Path, call: Call) -> None:
    plan(box, steps=[{"step": "04-decode"}])
    call("campaign", "run", "box")
    code, answer, _ = call("campaign", "run", "box", "--full")
    assert code == 0 and set(answer["ran"]) == {"04-decode"}
    code, answer, _ = call("campaign", "run", "box", "--full")
    assert code == 0 and answer["nothing_to_do"]


def test_a_failed_run_measures_nothing(box: Path, call: Call) -> None:
    plan(box, steps=[{"step": "04-decode", "parameters": {"fail": True}}])
    code, answer, _ = call("campaign", "run", "box")
    assert code == 1 and answer["ran"]["04-decode"]["status"] == "failed"
    assert len(answer["ran"]["04-decode"]["receipts"]) == 1, "what it wrote is kept and listed"
    found = states(call)["04-decode"]
    assert found["state"] == "missing" and "RuntimeError: after the receipt" in found["last"]


def test_steps_that_cannot_run_are_named(box: Path, call: Call) -> None:
    plan(box, steps=[{"step": "09-nothing"}, {"step": "02-count", "parameters": {"wrong": 1}}])
    code, answer, _ = call("campaign", "run", "box")
    assert code == 1 and "unknown step '09-nothing'" in answer["not_run"]["09-nothing"]
    assert "unknown parameter 'wrong'" in answer["not_run"]["02-count"] and not answer["ran"]
    assert states(call)["09-nothing"]["state"] == "unreadable"


def test_what_others_published_is_not_measured(box: Path, call: Call) -> None:
    plan(box, lane=None)
    code, answer, _ = call("campaign", "run", "box", "--rerun", "04-decode")
    assert code == 0 and answer["nothing_to_do"]
    assert {step["state"] for step in states(call).values()} == {"published"}


RECIPE: dict[str, Any] = {
    "name": "r", "engine": "lanelab-mini", "version": "1", "flags": {"max-num-seqs": {"value": 8, "why": "enough"}},
}  # fmt: skip


def test_only_what_reaches_the_server_makes_a_receipt_stale(box: Path) -> None:
    def write(recipe: dict[str, Any], says: str = "toy") -> None:
        value = {"name": "toy", "kind": "mini", "says": says, "recipe": recipe}
        (box / "data/lanes/toy.yaml").write_text(yaml.safe_dump(value))

    def now() -> freshness.StepState:
        return {step.step: step for step in freshness.states(plans.load("box"))}["04-decode"]

    write(RECIPE)
    work, moment = WORKLOADS["decode"], datetime.now(UTC)
    ref = lanes.load("toy").recipe_ref()
    receipt = Receipt(
        id=new_id("decode", moment), kind="decode", origin="measured", campaign="box", machine="here", model="toy",
        lane="toy", step="04-decode", boot="boot-1", recipe=RecipeRef(name="other name", digest=ref and ref.digest),
        parameters=work.resolve("quick"), source=Source(workload="decode", workload_version=work.version),
    )  # fmt: skip
    Store(box / "data/campaigns/box").write(receipt)
    assert now().state == "fresh"
    write(
        {**RECIPE, "name": "renamed", "flags": {"max-num-seqs": {"value": 8, "why": "another reason"}}}, "other words"
    )
    assert now().state == "fresh"
    write({**RECIPE, "flags": {"max-num-seqs": {"value": 16, "why": "enough"}}})
    stale = now()
    assert stale.state == "stale" and stale.why[0].startswith("decode: recipe_digest: ")
    write({**RECIPE, "version": "2"})
    assert now().state == "stale"
    write(RECIPE)
    plan(box, machine="gb300")
    assert now().why == ["decode: machine: here → gb300"]


def test_only_the_asked_parameter_makes_a_stale_step_run(box: Path) -> None:
    stale = freshness.StepState(
        "04-decode", "toy", "stale", ["decode: parameter repeats: 3 → 5"], values={"preset": "full"}
    )
    changed = freshness.StepState(
        "04-decode", "toy", "stale", ["decode: recipe_digest: a → b"], values={"preset": "full"}
    )
    campaign = plans.load("box")
    assert choose(campaign, [stale], [], {"preset": "full"}) == [stale]
    assert choose(campaign, [changed], [], {"preset": "full"}) == []
    assert choose(campaign, [stale], [], {}) == []


def test_one_step_of_a_named_campaign_is_run_as_it_plans(box: Path, call: Call) -> None:
    (box / "data/lanes/other.yaml").write_text((box / "data/lanes/toy.yaml").read_text().replace("toy", "other"))
    plan(box, lane="other", steps=[{"step": "04-decode", "parameters": {"preset": "full"}}])
    code, answer, _ = call("run", "04-decode", "--campaign", "box")
    assert code == 0
    taken = {name: value["value"] for name, value in record_of(answer)["parameters"].items()}
    assert (taken["lane"], taken["preset"], taken["campaign"]) == ("other", "full", "box")
    assert states(call)["04-decode"]["state"] == "fresh"
    code, answer, _ = call("run", "04-decode", "--campaign", "box", "--lane", "toy", "-p", "preset=quick")
    taken = {name: value["value"] for name, value in record_of(answer)["parameters"].items()}
    assert code == 0 and (taken["lane"], taken["preset"]) == ("toy", "quick"), "what is given comes first"


def test_scaffold(lab: Path, call: Call) -> None:
    notebook(lab / "notebooks", "02-count", [], "print(1 + 1)")
    code, answer, _ = call("campaign", "new", "my-box", "--lane", "nope")
    assert (
        code == 1 and "unknown lane 'nope'" in answer["error"]["message"] and not (lab / "site/posts/my-box").exists()
    )
    url = "http://127.0.0.1:9/v1"
    code, answer, _ = call("campaign", "new", "my-box", "--title", 'My "box": 1', "--lane", url)
    assert code == 0 and plans.load("my-box").lane == url and "--ephemeral" not in str(answer)
    assert code == 0 and plans.load("my-box").title == 'My "box": 1'
    assert [step.step for step in plans.load("my-box").steps] == ["02-count"]
    names = {str(Path(path).relative_to(lab)) for path in answer["files"]}
    assert {"site/posts/my-box/index.qmd", "site/posts/my-box/companion.qmd"} <= names
    from lanelab.publish import facts_file, register

    folder = lab / "data/campaigns/my-box"
    assert {"decode_tok_s", "knee_streams"} <= set(facts_file.load(folder / "facts.yaml"))
    assert not register.claims(folder)
    assert not register.corrections(folder)
    before = {path: Path(path).read_bytes() for path in answer["files"]}
    code, answer, _ = call("campaign", "new", "my-box", "--lane", url)
    assert code == 1 and "exists already" in answer["error"]["message"]
    assert {path: Path(path).read_bytes() for path in before} == before
    code, answer, _ = call("campaign", "new", "../box")
    assert code == 2


def test_records_of_another_machine_or_torn_ones(lab: Path, call: Call, box: Path) -> None:
    folder = lab / "data/campaigns/box/runs/04-decode/20260101t000000z-00000000"
    folder.mkdir(parents=True)
    assert states(call)["04-decode"]["state"] == "missing", "a folder without a record is no run"
    draft = record.Run(
        id=folder.name, status="running", campaign="box", step="04-decode", kernel="python3", notebook="x.ipynb",
        notebook_sha256="0", started="2026-01-01T00:00:00Z", runner=record.Runner(pid=1, started=1.0),
    )  # fmt: skip
    draft.write(folder)
    assert "the runner was killed" in states(call)["04-decode"]["last"]
    (folder / "run.json").write_text('{"id": ')
    code, answer, _ = call("campaign", "status", "box")
    assert code == 1 and "run.json" in answer["error"]["message"]


def test_the_documented_fields_are_the_record_s() -> None:
    text = (Path(__file__).parents[3] / "site" / "docs" / "formats.md").read_text()
    fields = {"schema" if name == "schema_" else name for name in record.Run.model_fields}
    section = text.split("## Run:")[1].split("\n## ")[0]
    assert {name for name in fields if f"`{name}`" not in section} == set()
    section = text.split("## Campaign:")[1].split("\n## ")[0]
    assert {name for name in plans.Campaign.model_fields if f"`{name}`" not in section} == set()


def test_here_is_made_from_mini_s_plan(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lanelab import machine_here
    from lanelab.errors import NotFound
    from lanelab.run import here

    monkeypatch.setattr(machine_here, "copy_gib_s", lambda *_: 1.0)
    with pytest.raises(NotFound, match="'mini'"):
        here.ensure()
    assert not (lab / "data/campaigns/here").exists()
    folder = lab / "data/campaigns/mini"
    folder.mkdir()
    steps = [{"step": "01-a", "parameters": {"machine": "box"}}, {"step": "04-b", "parameters": {"preset": "full"}}]
    (folder / "campaign.yaml").write_text(
        yaml.safe_dump({"name": "mini", "title": "M", "machine": "box", "lane": "toy", "steps": steps})
    )
    (folder / "facts.yaml").write_text("# facts\n")
    made = here.ensure()
    assert (made.name, made.machine, made.lane) == ("here", "here", "toy")
    assert [step.parameters for step in made.steps] == [{"machine": "here"}, {"preset": "quick"}]
    assert (lab / "data/machines/here.yaml").is_file() and (made.dir / "facts.yaml").read_text() == "# facts\n"
    (made.dir / "facts.yaml").write_text("# mine\n")
    here.ensure()
    assert (made.dir / "facts.yaml").read_text() == "# mine\n"
