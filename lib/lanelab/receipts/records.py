"""Whether the records of runs are whole: form, digest, files, and the receipts on both sides.

A run's `run.json` decides which receipts count, so it is held as tightly as they are. It carries a
digest like theirs; a record from before there was one is a note. A finished run's folder holds
exactly the files that the record lists. A receipt that was measured in a run needs that run's
record, and a receipt that a good run lists needs its file.

The form is checked against a table here, because the record's own model belongs to a room above.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lanelab.receipts.canonical import NotCanonical, digest_of, parse_json
from lanelab.receipts.model import Receipt
from lanelab.receipts.problem import Problem

SCHEMA = "lanelab/run/1"
NAME = "run.json"
STATUSES = ("running", "ok", "failed", "died", "timeout", "interrupted")
_TEXT, _MAYBE_TEXT, _OBJECT, _LIST = (str,), (str, type(None)), (dict,), (list,)
FORM: dict[str, tuple[type, ...]] = {
    "schema": _TEXT, "id": _TEXT, "status": _TEXT, "cause": _MAYBE_TEXT, "reason": _MAYBE_TEXT, "campaign": _TEXT,
    "step": _TEXT, "lane": _MAYBE_TEXT, "kernel": _TEXT, "notebook": _TEXT, "notebook_sha256": _TEXT,
    "parameters": _OBJECT, "measures": _LIST, "render": (dict, type(None)), "started": _TEXT, "finished": _MAYBE_TEXT,
    "seconds": (int, float, type(None)), "limits": _OBJECT, "cells": _OBJECT, "cell_seconds": _OBJECT,
    "receipts": _LIST, "files": _OBJECT, "versions": _OBJECT, "ended_processes": _LIST, "warnings": _LIST,
    "runner": (dict, type(None)), "digest": _MAYBE_TEXT,
}  # fmt: skip
OPTIONAL = {"render", "digest"}  # absent from older records
_OF_TEXTS = ("receipts", "warnings", "files", "versions")


def problems(campaign_dir: Path, known: Mapping[str, Receipt]) -> Iterator[Problem]:
    """Every problem of the campaign's runs; `known` are its receipts by id."""
    recorded: set[str] = set()
    filed = {path.stem for path in (campaign_dir / "receipts").glob("*/*.json")}
    for folder in sorted((campaign_dir / "runs").glob("*/*")):
        if not folder.is_dir():
            continue
        path = folder / NAME
        if not path.is_file():
            # a runner that was killed before its first record leaves this; a receipt that names it is an error below
            yield Problem(folder, "run", f"has no {NAME}: nobody can tell what it is", "note")
            continue
        recorded.add(folder.name)
        yield from _record(campaign_dir, path, filed)
    for made in known.values():
        if made.run is not None and made.origin == "measured" and made.run not in recorded:
            yield Problem(
                campaign_dir / "receipts" / made.kind / f"{made.id}.json", "run",
                f"was measured in run {made.run}, which has no record under runs/",
            )  # fmt: skip


def _record(campaign_dir: Path, path: Path, filed: set[str]) -> Iterator[Problem]:
    try:
        value = parse_json(path.read_bytes())
    except OSError as error:
        yield Problem(path, "run", f"cannot be read: {error.strerror}")
        return
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        yield Problem(path, "run", f"is not a run's record: {why}")
        return
    wrong = form(value) or _place(campaign_dir, path, value)
    if wrong is not None:
        yield Problem(path, "run", f"is not a run's record: {wrong}")
        return
    if value.get("digest") is None:
        yield Problem(path, "digest", "has no digest: it is from before records had one", "note")
    else:
        try:
            expected = digest_of(value)
        except NotCanonical as error:
            yield Problem(path, "digest", str(error))
            return
        if value["digest"] != expected:
            yield Problem(
                path, "digest", f"its content has digest {expected}, it says {value['digest'][:80]}: it was changed"
            )
    if value["status"] == "running":
        return
    yield from _files(path.parent, value["files"])
    if value["status"] == "ok":
        for name in value["receipts"]:
            if name not in filed:
                yield Problem(path, "receipt", f"lists the receipt {name[:80]!r}, which has no file")


def form(value: Any) -> str | None:
    """What is wrong with a record's form, in one line, or None."""
    if not isinstance(value, dict):
        return f"it must be an object, not {type(value).__name__}"
    for name in FORM:
        if name not in value and name not in OPTIONAL:
            return f"field {name} is missing"
    for name, item in value.items():
        if name not in FORM:
            return f"field {name[:80]!r} is not one of a record"
        if not isinstance(item, FORM[name]) or isinstance(item, bool):
            valid = " or ".join("null" if one is type(None) else one.__name__ for one in FORM[name])
            return f"field {name}: must be {valid}, not {type(item).__name__}"
    if value["schema"] != SCHEMA:
        return f"its schema is {value['schema'][:80]!r}; this version reads {SCHEMA!r}"
    if value["status"] not in STATUSES:
        return f"field status: {value['status'][:80]!r} (valid: {', '.join(STATUSES)})"
    for name in _OF_TEXTS:
        items = value[name].values() if isinstance(value[name], dict) else value[name]
        if not all(isinstance(item, str) for item in items):
            return f"field {name}: must hold texts"
    if value["status"] != "running" and value["finished"] is None:
        return f"field finished: a run that is {value['status']} has ended"
    return _contradiction(value)


def _contradiction(value: dict[str, Any]) -> str | None:
    """A status that the record's other fields belie; in a record without a digest nothing else tells an edit."""
    status, cells = value["status"], value["cells"]
    if status == "ok" and (value["reason"] or cells.get("stopped_in") or cells.get("not_executed")):
        return "its status is 'ok', but it gives a reason why it is not, or cells that did not run"
    if status not in ("ok", "running") and value["reason"] is None:
        return f"its status is {status!r}, but it gives no reason"
    return None


def _place(campaign_dir: Path, path: Path, value: dict[str, Any]) -> str | None:
    for name, stands in (("id", path.parent.name), ("step", path.parent.parent.name), ("campaign", campaign_dir.name)):
        if value[name] != stands:
            return f"its {name} is {value[name][:80]!r}, it stands in {stands!r}"
    return None


def _files(folder: Path, listed: dict[str, str]) -> Iterator[Problem]:
    """A finished run's folder against its list, both ways."""
    for name, expected in listed.items():
        yield from _file(folder, name, expected)
    for path in _present(folder):
        if path.relative_to(folder).as_posix() not in listed:
            yield Problem(path, "run", "was put into the folder of a finished run, whose record does not list it")


def _present(folder: Path) -> Iterable[Path]:
    """The files that a record lists: all but itself, links and temporary files."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name != NAME and path.suffix != ".tmp":
            yield path


def _file(folder: Path, name: str, expected: str) -> Iterator[Problem]:
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        yield Problem(folder / NAME, "run", f"lists the file {name[:80]!r}, which is not in its folder")
        return
    try:
        with open(path, "rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        yield Problem(path, "run", f"cannot be read: {error.strerror}; a finished run is never changed")
        return
    if actual != expected.removeprefix("sha256:"):
        yield Problem(path, "run", "was changed after its run ended")
