"""Digits in prose: a number that is no fact has no receipt, so it may not stand in a text.

`loose_digits` reads Markdown (or plain text) as a reader of the page would: words, raw HTML's text,
titles, alt texts, footnotes and entities count; code, targets of links, layout attributes, shortcodes,
markers of lists and what `names` lists do not. Any character that Unicode calls a number is a digit.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import unescape

from lanelab.publish.names import NAMES

_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_TAG = r"</?[A-Za-z][\w-]*(?:\s+[A-Za-z_:@][\w.:-]*(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'=<>`]+))?)*\s*/?>"
_FACT_SPAN = r"<span\b[^>]*\bclass=\"[^\"]*\bfact\b[^\"]*\"[^>]*>.*?</span>"
_HTML = rf"(?P<gone><!--.*?-->|<(?P<raw>script|style)\b[^>]*>.*?</(?P=raw)\s*>)|(?P<fact>{_FACT_SPAN})|(?P<tag>{_TAG})"
_ANY_TAG = re.compile(_TAG, re.S)
_IN_HTML = re.compile(_HTML, re.S)
# whichever comes first decides, as in a Markdown parser: a tick in a comment opens no code, and the other way round
_FIRST = re.compile(
    r"(?P<fence>^ {0,3}(?P<fenced>(?P<mark>[`~])(?P=mark){2,})(?P<info>[^\n`]*)\n(?P<body>.*?)"
    r"(?:^ {0,3}(?P=fenced)(?P=mark)*[ \t]*$|\Z))"
    r"|(?P<code>(?<![\\`])(?P<tick>`+)(?!`)(?P<span>(?:(?!\n[ \t]*\n).)+?)(?<!`)(?P=tick)(?!`))(?P<html>\{=html\})?"
    rf"|{_HTML}",
    re.S | re.M,
)
_SHORTCODE = re.compile(r"\{\{<\s*(?:var|embed|include|meta|pagebreak)\b.*?>\}\}", re.S)
_FACT_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\](?:\([^)\s]*(?:\s+\"[^\"]*\")?\))?\{[^}]*\.fact\b[^}]*\}", re.S)
_RECEIPT_TITLE = re.compile(r"(?<=\])\(/receipts/[^)\s]*\s+\"[^\"]*\"\)")  # a receipt's name, as its code says it
_LINK = re.compile(
    r"(?P<label>\[(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*\])*\]\()(?P<target><[^>\n]*>|[^)\s]{1,2000})"
    rf"(?=(?:\s+(?:{_QUOTED}))?\s*\))",
    re.S,
)
_ISSUE_LABEL = re.compile(r"\[(?:[\w./-]*[A-Za-z]|(?:PR|[Pp]ull request|[Ii]ssue)\s+)?#?(\d{1,6})\]\(")
_DEFINED = re.compile(rf"^ {{0,3}}\[(?P<name>[^\]^][^\]]*)\]:[ \t]*\S+(?P<title>[ \t]+(?:{_QUOTED}))?[ \t]*$", re.M)
_REFERENCE = re.compile(r"(?<=\])\[([^\[\]]+)\]")
_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]")
_ATTRIBUTE = rf"(?:[#.][\w:-]+|=\w+|-|[\w:-]+=(?:{_QUOTED}|[^\s\"'}}]+))"
_ATTRIBUTES = re.compile(rf"\{{\s*{_ATTRIBUTE}(?:\s+{_ATTRIBUTE})*\s*\}}")
# attributes whose value a reader sees or hears
_SHOWN = re.compile(
    rf"\b(?:[\w-]+-)?(?:alt|cap|title|subtitle|summary|label|description|placeholder|value|content)\s*=\s*"
    rf"(?P<value>{_QUOTED}|[^\s\"'}}>]+)",
    re.S,
)
_DIV = re.compile(r"^[ \t>]*:{3,}[ \t]*(?:[A-Za-z][\w-]*)?[ \t:]*$", re.M)
_CROSS_REFERENCE = re.compile(r"@(?:fig|tbl|sec|eq|lst)-[\w-]+")
_ADDRESS = re.compile(r"\bhttps?://[^\s)>\]]+|\bsha256:[0-9a-f]{8,64}…?")
_ORDERED = re.compile(r"^(?P<indent>[ \t>]*)(?P<number>\d{1,9})[.)](?=\s)")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Finding:
    """A digit that is no fact: where it stands and the word that holds it."""

    line: int
    column: int
    text: str
    message: str = "a digit in prose that is no fact: take it from facts.yaml, or put code in backticks"


def loose_digits(markdown_text: str, *, facts: bool = True) -> list[Finding]:
    """Digits in prose that are no fact and not exempt, in order; lines and columns from 1.

    `facts=False` is for what people write: there a `.fact` link or span is a typed number like any
    other, since facts come from a `var` shortcode; only generated text may hold them.
    """
    text = markdown_text.replace("\r\n", "\n")
    text = re.sub(r"\A---\n.*?\n---[ \t]*(?:\n|\Z)", lambda match: _blank(match[0]), text, flags=re.S)
    text = _FIRST.sub(lambda match: _first(match, facts), text)
    text = _SHORTCODE.sub(lambda match: _blank(match[0]), text)
    if facts:
        for pattern in (_FACT_LINK, _RECEIPT_TITLE):
            text = pattern.sub(lambda match: _blank(match[0]), text)
    for read in (_links, _references, _attributes):
        text = read(text)
    for pattern in (_DIV, _CROSS_REFERENCE, _ADDRESS):
        text = pattern.sub(lambda match: _blank(match[0]), text)
    text = re.sub(r"&[#\w]+;", lambda match: unescape(match[0]).replace("\n", " "), _markers(text))
    for name in NAMES:
        text = name.sub(lambda match: _blank(match[0]), text)
    return [finding for number, line in enumerate(text.split("\n"), 1) for finding in _found(line, number)]


def is_number(character: str) -> bool:
    """Whether Unicode calls it a number: `7`, `½`, `②`, `Ⅷ`."""
    return unicodedata.category(character).startswith("N") or unicodedata.numeric(character, None) is not None


def _found(line: str, number: int) -> list[Finding]:
    found = []
    for word in _WORD.finditer(line):
        if any(map(is_number, word[0])):
            found.append(Finding(number, word.start() + 1, word[0].strip(".,;:()*_\"'`")))
    return found


def _first(match: re.Match[str], facts: bool) -> str:
    if match["fence"] is not None:
        if match["info"].strip() != "{=html}":
            return _blank(match["fence"])
        at, end = match.start("body") - match.start(), match.end("body") - match.start()
        return _blank(match[0][:at]) + _html_text(match["body"], facts) + _blank(match[0][end:])
    if match["code"] is not None:
        if match["html"]:
            return " " * len(match["tick"]) + _html_text(match["span"], facts) + " " * (len(match["tick"]) + 7)
        return match["tick"] + _blank(match["span"]) + match["tick"]
    return _html(match, facts)


def _html_text(text: str, facts: bool) -> str:
    return _IN_HTML.sub(lambda match: _html(match, facts), text)


def _html(match: re.Match[str], facts: bool) -> str:
    if match["gone"] is not None or (match["fact"] is not None and facts):
        return _blank(match[0])
    if match["fact"] is not None:
        return _ANY_TAG.sub(lambda tag: _shown_only(tag[0]), match[0])
    return _shown_only(match[0])


def _shown_only(text: str) -> str:
    """Only the values of attributes that are shown, each where it stood."""
    out = list(_blank(text))
    for shown in _SHOWN.finditer(text):
        out[shown.start("value") : shown.end("value")] = re.sub("[\"']", " ", shown["value"])
    return "".join(out)


def _links(text: str) -> str:
    def without_target(match: re.Match[str]) -> str:
        label = match["label"]
        issue = _ISSUE_LABEL.fullmatch(label)
        if issue and re.search(rf"/(?:pull|issues|discussions)/{issue[1]}\b", match["target"]):
            label = "[" + _blank(label[1:-2]) + "]("  # an issue's number in a link to it
        return label + _blank(match["target"])

    return _LINK.sub(without_target, _LINK.sub(without_target, text))  # twice: a picture in a link


def _references(text: str) -> str:
    """Labels of links and footnotes, where they are defined; elsewhere brackets are literal text."""
    defined: set[str] = set()
    notes = {match[1] for match in re.finditer(r"^ {0,3}\[\^([^\]\s]+)\]:", text, re.M)}
    lines = text.split("\n")
    for index, line in enumerate(lines):
        match = _DEFINED.match(line)
        if match and (index == 0 or not lines[index - 1].strip() or lines[index - 1].startswith("\0")):
            defined.add(match["name"].lower())
            lines[index] = "\0" + _blank(line[: match.end()])[1:]
            if match["title"]:
                lines[index] = "\0" + " " * (match.start("title") - 1) + match["title"]
    text = "\n".join(lines).replace("\0", " ")
    text = _REFERENCE.sub(lambda match: _blank(match[0]) if match[1].lower() in defined else match[0], text)
    return _FOOTNOTE.sub(lambda match: _blank(match[0]) if match[1] in notes else match[0], text)


def _attributes(text: str) -> str:
    def read(match: re.Match[str]) -> str:
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].lstrip(" \t>")
        before = text[match.start() - 1 : match.start()]
        return _shown_only(match[0]) if before in ("]", ")", "`") or line[:1] in ("#", ":") else match[0]

    return _ATTRIBUTES.sub(read, text)


def _markers(text: str) -> str:
    """Numbers of ordered lists: one, or one more than the item before; any other is shown or is text."""
    last: dict[str, int] = {}
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line.startswith("#"):
            last.clear()
        if match := _ORDERED.match(line):
            number = int(match["number"])
            if number == 1 or number == last.get(match["indent"], -1) + 1:
                last[match["indent"]] = number
                lines[index] = _blank(match[0]) + line[match.end() :]
    return "\n".join(lines)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
