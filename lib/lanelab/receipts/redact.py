"""What must never leave this machine: secrets, host names, home paths. Applied when a receipt is written."""

from __future__ import annotations

import os
import re
import socket
from functools import lru_cache
from typing import Any

from lanelab.receipts.model import Receipt

_SECRETS = (
    re.compile(r"\b(?:sk|hf|ghp|gho|xoxb|glpat)[-_][A-Za-z0-9_\-]{8,}"),
    re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/\-]{8,}=*"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"(?i)\b(api[-_]?key|token|password|secret)(\s*[=:]\s*)(?!null|none|true|false)[^\s,;\"']{6,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_HOME = re.compile(r"(?<![\w.])(/home/[^/\s\"':,]+|/Users/[^/\s\"':,]+|/root)(?=[/\s\"':,]|$)")
_SECRET_KEY = re.compile(r"(?i)(api[-_]?key|password|secret|authorization|auth[-_]token|hf[-_]token)$")


@lru_cache(maxsize=1)
def _local() -> tuple[re.Pattern[str], ...]:
    names = {socket.gethostname(), socket.getfqdn(), os.environ.get("HOSTNAME", "")}
    names = {name for name in names if len(name) > 3 and name not in {"localhost", "localhost.localdomain"}}
    patterns = [re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])") for name in sorted(names, key=len, reverse=True)]
    home = os.path.expanduser("~")
    if len(home) > 1:
        patterns.append(re.compile(re.escape(home) + r"(?=[/\s\"':,]|$)"))
    return tuple(patterns)


def redact_text(text: str) -> str:
    """The text without secrets (`<secret>`), host names (`<host>`) and home paths (`~`)."""
    for pattern in _SECRETS:
        text = pattern.sub("<secret>", text)
    *hosts, home = _local() or (re.compile("$^"),)
    for pattern in hosts:
        text = pattern.sub("<host>", text)
    text = home.sub("~", text)
    return _HOME.sub("~", text)


def redact_value(value: Any) -> Any:
    """Every text in a JSON value redacted; values under a secret's name are replaced whole."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {
            key: "<secret>" if _SECRET_KEY.search(str(key)) and isinstance(item, str) and item else redact_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    return value


def redact(receipt: Receipt) -> Receipt:
    """The receipt as it may be written."""
    return Receipt.model_validate(redact_value(receipt.body()))
