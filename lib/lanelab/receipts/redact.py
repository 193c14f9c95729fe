"""What must never leave this machine: secrets, host names, home paths. Applied when a receipt is written.

Secrets are known by their issuer's prefix, by the name they stand under, or by their place in a URL;
hosts by this machine's own name and by addresses in URLs that nobody else can reach. Prose about
tokens and passwords is left alone: a bare word is a secret only where a name and a sign say so. This
is a net with known meshes, not a proof; a receipt that must not be read is `visibility: private`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lanelab.receipts.model import Receipt

_PREFIXED = (
    r"hf_[A-Za-z0-9]{12,}",
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_\-]{12,}",
    r"xox[abeprs]-[A-Za-z0-9\-]{10,}",
    r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"AIza[A-Za-z0-9_\-]{30,}",
    r"nvapi-[A-Za-z0-9_\-]{16,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_\-]{30,}",
    r"sk-(?:[a-z]+[0-9]*-){0,2}(?=[A-Za-z0-9_\-]*[0-9])[A-Za-z0-9_]{12,}[A-Za-z0-9_\-]*",
    r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*",
)
_NAME = (
    r"(?:api|access|private|secret|account|encryption|signing)[-_]?key|pass(?:word|wd|phrase)|"
    r"(?:hf|hugging[-_]?face(?:[-_]?hub)?|hub|auth|access|api|bearer|refresh|session|id|github|gh|gitlab|wandb|"
    r"openai|anthropic|ngc|npm|pypi|slack|vault)[-_]?token|client[-_]?secret|credentials?"
)
_NONE = r"(?:null|none|true|false|unset|empty|redacted|required|optional|not\b)"
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
    re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_PREFIXED)})"),
    re.compile(rf"(?i)(?<=[?&])(?:{_NAME}|token|key|sig|signature)=(?!<secret>)[^&\s#\"']+"),
    re.compile(r"(?i)(?<![A-Za-z])(?:bearer|basic)\s+(?=[^\s\"']*[0-9._~+/=])[A-Za-z0-9._~+/\-]{8,}=*"),
    # name=value, name: value, --name value; quotes around either
    re.compile(rf"(?i)(?:{_NAME})[\"']?\s*[=:]\s*[\"']?(?!{_NONE}|<|\$|[\"'])[^\s,;\"'&}}\])]+"),
    re.compile(rf"(?i)--(?:{_NAME}|token)\s+(?!-|<|\$)[^\s\"']+"),
    re.compile(r"(?i)(?<![A-Za-z])(?:token|secret)[\"']?\s*[=:]\s*[\"']?(?=[A-Za-z0-9._\-]*[A-Za-z])"
               r"(?=[A-Za-z0-9._\-]*[0-9])[A-Za-z0-9_\-][A-Za-z0-9._\-]{11,}"),
)  # fmt: skip
_URL_USER = re.compile(r"(?<=://)(?!git@|<secret>@)[^/\s\"'<>?#]+(?=@)")  # user:password@; `git@` is everybody's
_LABEL = re.compile(r"^(\s*-*[A-Za-z][\w\-]*[\"']?\s*(?:[=:]\s*[\"']?|\s))")
_HOME = re.compile(
    r"(?<![\w.~-])(?:(?:/var)?/home/[^/\s\"'`:,;)\]}<>|]+|/Users/[^/\s\"'`:,;)\]}<>|{]+|/root(?![\w-])|"
    r"[A-Za-z]:[\\/]+Users[\\/]+[^\\/\s\"':,;)\]}<>|]+)"
)
_SECRET_KEY = re.compile(rf"(?i)(?:^|[-_.])(?:{_NAME}|secret|authorization)$|^(?:apikey|x-api-key|cookie|set-cookie)$")
_SECRET_FLAG = re.compile(rf"(?i)^--?(?:{_NAME}|token)$")
_URL_HOST = re.compile(
    r"(?i)(\b(?:https?|wss?|tcp|grpcs?|ssh|redis)://(?:<secret>@|git@)?)([A-Za-z0-9_.\-]+|\[[0-9A-Fa-f:.]+\])"
)
_OPEN_HOST = re.compile(r"(?i)^(?:localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]|host\.docker\.internal|example)$")
_LOCAL_ZONE = re.compile(r"(?i)\.(?:local|lan|internal|corp|home|intranet|localdomain|home\.arpa|ts\.net)$")
_PRIVATE_ADDRESS = re.compile(
    r"^(?:10\.\d|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|\[)"
)
_BARE_ADDRESS = re.compile(r"(?<![\w.])192\.168\.\d{1,3}\.\d{1,3}(?![\w.]*\d)")


@lru_cache(maxsize=1)
def _this_host() -> tuple[re.Pattern[str], ...]:
    """Patterns of this machine's names: anywhere if the name is distinctive, else only as an address."""
    names = {socket.gethostname(), socket.getfqdn(), os.environ.get("HOSTNAME", "")}
    names |= {name.split(".")[0] for name in names}
    patterns = []
    for name in sorted((name for name in names if len(name) > 1), key=len, reverse=True):
        if name.startswith("localhost") or re.fullmatch(r"[\d.]+", name):
            continue
        text = re.escape(name)
        if _distinctive(name):
            patterns.append(re.compile(rf"(?i)(?<![\w-]){text}(?![\w-])"))
        else:
            patterns.append(re.compile(rf"(?i)(?<=@){text}(?![\w-])|(?<![\w.-]){text}(?=:\d{{2,5}}(?!\d))"))
    return tuple(patterns)


def _distinctive(name: str) -> bool:
    """Not a word or a product's name that prose may use (`station`, `gb300`)."""
    return "." in name or (len(name) >= 8 and any(part.isdigit() for part in name) and not name.isalpha())


@lru_cache(maxsize=1)
def _this_home() -> re.Pattern[str]:
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 (text, not a path)
    return re.compile(rf"(?<![\w.~/-]){re.escape(home)}(?![\w-])" if home.count("/") else "(?!)")


@lru_cache(maxsize=8192)
def redact_text(text: str, *, local: bool = True) -> str:
    """The text without secrets (`<secret>`), host names (`<host>`) and home paths (`~`).

    `local=False` leaves out what depends on this machine (its names and its home), and addresses.
    """
    text = _URL_USER.sub("<secret>", text)
    for pattern in _SECRETS:
        text = pattern.sub(_kept_label, text)
    if local:
        text = _URL_HOST.sub(_public_host, text)
        text = _BARE_ADDRESS.sub("<host>", text)
        for pattern in _this_host():
            text = pattern.sub("<host>", text)
        text = _this_home().sub("~", text)
    return _HOME.sub("~", text)


def _kept_label(match: re.Match[str]) -> str:
    """`api_key=<secret>`: the name that gave a secret away stays, the rest goes."""
    text = match.group()
    label = _LABEL.match(text)
    return (label.group(1) if label and not text.startswith("-----") else "") + "<secret>"


def _public_host(match: re.Match[str]) -> str:
    before, host = match.groups()
    if _OPEN_HOST.match(host):
        return str(match.group())
    private = "." not in host or _LOCAL_ZONE.search(host) or _PRIVATE_ADDRESS.match(host)
    return f"{before}<host>" if private else str(match.group())


def redact_value(value: Any, *, local: bool = True) -> Any:
    """Every text in a JSON value redacted; values under a secret's name are replaced whole."""
    if isinstance(value, str):
        return redact_text(value, local=local)
    if isinstance(value, dict):
        return {
            redact_text(str(key), local=local): "<secret>" if _is_secret(key, item) else redact_value(item, local=local)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        before: list[Any] = [None, *value]
        return [
            "<secret>" if isinstance(flag, str) and _SECRET_FLAG.match(flag) and _is_value(item)
            else redact_value(item, local=local)
            for flag, item in zip(before, value, strict=False)
        ]  # fmt: skip
    return value


def _is_value(item: Any) -> bool:
    return isinstance(item, str) and bool(item) and not item.startswith(("-", "$"))


def _is_secret(key: Any, item: Any) -> bool:
    if not _SECRET_KEY.search(str(key)) or item is None or isinstance(item, bool):
        return False
    return item not in ("", "<secret>") and not (isinstance(item, str) and item.startswith("$"))


def leaks(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Fields of a receipt's value that hold a secret or a home path: the field and what it is."""
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{where}.{key}" if where else str(key)
            if redact_text(str(key), local=False) != str(key):
                yield where or "(top)", "a name that is a secret or a home path"
            elif _is_secret(key, item):
                yield place, "a secret"
            else:
                yield from leaks(item, place)
    elif isinstance(value, (list, tuple)):
        shown = redact_value([item if isinstance(item, str) else None for item in value], local=False)
        for number, item in enumerate(value):
            if isinstance(item, str):
                if shown[number] != item:
                    yield f"{where}.{number}", _named(shown[number])
            else:
                yield from leaks(item, f"{where}.{number}")
    elif isinstance(value, str) and (shown := redact_text(value, local=False)) != value:
        yield where, _named(shown)


def _named(shown: str) -> str:
    return "a secret" if "<secret>" in shown else "a home path"


def redact(receipt: Receipt) -> Receipt:
    """The receipt as it may be written. Its own names (id, kind, campaign, step, run) stay as they are."""
    body = receipt.body()
    clean = redact_value(body)
    for name in ("id", "kind", "campaign", "step", "run", "boot", "supersedes", "machine", "lane"):
        if isinstance(body[name], str):
            clean[name] = redact_text(body[name], local=False)
    return Receipt.model_validate(clean)
