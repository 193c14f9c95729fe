"""`_variables.yml`: every fact of every published campaign, for `{{< var campaign.fact >}}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lanelab.publish import facts as facts_module
from lanelab.publish.facts import Fact
from lanelab.publish.generated import put
from lanelab.publish.provenance import fact_link

DRAFTS = frozenset({"here"})  # campaigns whose facts may still be without rows


def variables(campaigns: Iterable[Path], drafts: Iterable[str] = DRAFTS) -> dict[str, dict[str, str]]:
    """Campaign to fact to Markdown; `<fact>_plain` is the number alone, without link and unit."""
    found: dict[str, dict[str, str]] = {}
    loose = set(drafts)
    for campaign_dir in campaigns:
        strict = campaign_dir.name not in loose
        found[campaign_dir.name] = of_facts(facts_module.evaluated(campaign_dir, strict=strict))
    return found


def of_facts(evaluated: Mapping[str, Fact]) -> dict[str, str]:
    """The variables of one campaign."""
    values: dict[str, str] = {}
    for name, fact in evaluated.items():
        values[name] = fact_link(fact)
        values[f"{name}_plain"] = fact.plain if not fact.disputed else fact.text
    return values


def write(site_dir: Path, campaigns: Iterable[Path], drafts: Iterable[str] = DRAFTS) -> Path:
    """Write `_variables.yml` of the site; returns its path. Raises what `facts.evaluate` raises."""
    path = site_dir / "_variables.yml"
    lines = ["# Made by `lanelab site build` from the campaigns' facts.yaml; not edited by hand."]
    for campaign, values in sorted(variables(campaigns, drafts).items()):
        lines.append(f"{json.dumps(campaign)}:" + ("" if values else " {}"))
        # JSON text is YAML text: one quoting rule for both renderers
        lines += [f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in sorted(values.items())]
    if len(lines) == 1:
        lines.append("{}")
    return put(path, "\n".join(lines) + "\n")
