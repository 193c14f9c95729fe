"""Posts of a new campaign hold no number, and their parts come from the campaign's files."""

from lanelab.campaign import Campaign
from lanelab.publish import receipts_pages, scaffold
from lanelab.publish.prose import loose_digits

PLAN = Campaign(
    name="trial", title='A "first" campaign', steps=[{"step": "01-memory-arithmetic"}, {"step": "04-decode"}]
)


def test_templates_hold_no_digit_and_no_placeholder(bench) -> None:
    for text in scaffold.texts(PLAN).values():
        assert loose_digits(text) == [] and "@@" not in text and "draft: true" in text
        assert 'title: "A \\"first\\" campaign' in text
    assert "draft" not in scaffold.texts(PLAN, draft=False)["index.qmd"]


def test_only_planned_steps_are_embedded(bench) -> None:
    text = scaffold.texts(Campaign(name="trial", title="x", steps=[{"step": "04-decode"}]))["index.qmd"]
    assert "notebooks-out/trial/04-decode.ipynb#fig-knee" in text and "01-memory" not in text


def test_existing_posts_are_never_overwritten(bench, tmp_path) -> None:
    assert [path.name for path in scaffold.write(PLAN)] == ["index.qmd", "companion.qmd"]
    post = tmp_path / "site" / "posts" / "trial" / "index.qmd"
    post.write_text("mine")
    assert scaffold.write(PLAN) == [] and post.read_text() == "mine"


def test_parts_of_a_post_say_what_there_is_and_what_is_missing(bench, tmp_path) -> None:
    bench.decode("decode-0001", [30.0], emulated="memory tiers")
    receipts_pages.write(tmp_path / "site", [bench.dir])
    folder = tmp_path / "site" / "receipts" / "trial"
    status = (folder / "_status.md").read_text()
    assert "[measured]{.badge .measured} [emulated]{.badge .emulated} · 2026-09-22 · lane `mini`" in status
    assert "[1 receipts]" in status or "[1 receipt]" in status
    gaps = (folder / "_gaps.md").read_text()
    assert "Long context" in gaps and "Decode speed" not in gaps
    for name in ("_status.md", "_claims.md", "_corrections.md", "_boots.md", "_gaps.md"):
        assert loose_digits((folder / name).read_text()) == [], name


def test_front_matter_names_no_campaign_whose_name_has_digits(bench) -> None:
    plan = Campaign(name="box7-run2", title="x", steps=[])
    for text in scaffold.texts(plan).values():
        front = text.split("---")[1]
        assert "box7" not in front
