"""`lanelab verify` also fails on a fact or claim that the receipts do not hold."""

from __future__ import annotations

from lanelab.publish import verifying


def test_each_fact_that_cannot_be_told_is_named(bench) -> None:
    bench.knee("knee-0001", {1: [20.0]})
    (bench.dir / "facts.yaml").write_text(
        "good: {from: {kind: knee, where: {streams: 1}, value: aggregate_tok_s}, digits: 1}\n"
        "absent: {from: {kind: knee, where: {streams: 64}, value: aggregate_tok_s}, digits: 1}\n"
        "wrong: {from: {kind: knee, where: {stream: 1}, value: aggregate_tok_s}, digits: 1}\n"
    )
    found = list(verifying.problems(bench.dir))
    assert [(problem.severity, name) for problem in found for name in ("absent", "wrong") if name in str(problem)] == [
        ("note", "absent"),
        ("error", "wrong"),
    ]


def test_a_broken_file_is_one_problem(bench) -> None:
    (bench.dir / "facts.yaml").write_text("good: [\n")
    (found,) = verifying.problems(bench.dir)
    assert "facts.yaml" in str(found) and found.severity == "error"


def test_claims_that_lean_on_nothing_are_named(bench) -> None:
    (bench.dir / "claims.yaml").write_text("- {claim: it is fast, state: certain}\n")
    assert any("claims.yaml" in str(problem) for problem in verifying.problems(bench.dir))
