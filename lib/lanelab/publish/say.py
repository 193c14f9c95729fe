"""Short sentences of a notebook whose numbers are facts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lanelab.errors import LabError, NotFound
from lanelab.publish.facts import Fact
from lanelab.publish.prose import loose_digits
from lanelab.publish.provenance import fact_link

_PLACE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")


class LooseDigit(LabError):
    """A number was typed into a sentence. Data: `text`, `digits`."""


def said(text: str, facts: Mapping[str, Fact], *, site: bool = True) -> str:
    """The text with each `{fact}` as a linked number.

    `{{` and `}}` stand for braces. Raises `LooseDigit` for a digit outside the braces and `NotFound`
    for a fact that facts.yaml does not name.
    """
    kept = text.replace("{{", "\x00").replace("}}", "\x01")
    if loose := loose_digits(_PLACE.sub(" ", kept), facts=False):
        raise LooseDigit(
            f"{loose[0].text!r} in {text[:60]!r} is a number that is no fact: name it in facts.yaml and write {{name}}",
            text=text, digits=[finding.text for finding in loose],
        )  # fmt: skip

    def filled(match: re.Match[str]) -> str:
        name = match[1].strip()
        if not _NAME.match(name) or name not in facts:
            raise NotFound("fact", name, facts, hint="facts stand in the campaign's facts.yaml")
        return fact_link(facts[name], site=site)

    return _PLACE.sub(filled, kept).replace("\x00", "{").replace("\x01", "}")
