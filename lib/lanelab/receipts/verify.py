"""Whether a campaign's receipts are whole: every byte, digest, schema, row, reference and run.

A digest guards against accidents, not against forgery: whoever can edit a receipt can compute a new
digest. So a flipped byte, a torn file, a hand-made edit or a lost Parquet file shows; a receipt that
somebody made up from the start does not.

Nothing here raises for a bad file: each problem is one line that names the file. Other rooms add
their own checks with `also` (facts and provenance come from publish/).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from lanelab.errors import BadFile, LabError
from lanelab.receipts import records
from lanelab.receipts.canonical import NotCanonical, canonical_bytes, digest_of, parse_json
from lanelab.receipts.columns import from_table
from lanelab.receipts.kinds import load_all
from lanelab.receipts.load import read_parquet
from lanelab.receipts.model import SCHEMA, Receipt, RowsFile
from lanelab.receipts.problem import Problem
from lanelab.receipts.redact import leaks

__all__ = ["Check", "Problem", "Report", "also", "campaign", "campaigns", "receipt"]

_TEMPORARY = re.compile(r"^\..+\.tmp$")
# Python spells these numbers in its own way; JSON without them that Python spells alike is canonical.
_ODD_NUMBER = re.compile(rb"\.0[,}\]]|\d[eE][+-]")
_FIRST_SURROGATE = "\ud800"  # from here on Python sorts keys otherwise than RFC 8785


Check = Callable[[Path], Iterable[Problem]]
_CHECKS: dict[str, Check] = {}


def also(name: str, check: Check) -> None:
    """Add a check of a whole campaign folder, such as publish's facts; a second of that name replaces the first."""
    _CHECKS[name] = check


@dataclass
class Report:
    """What was verified and what was found."""

    campaigns: list[str] = field(default_factory=list)
    receipts: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """Problems that are not mere notes."""
        return [problem for problem in self.problems if problem.severity == "error"]

    @property
    def exit_code(self) -> int:
        """0 if nothing is wrong, else 1."""
        return 1 if self.errors else 0

    def to_data(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "ok": not self.errors,
            "campaigns": self.campaigns,
            "receipts": self.receipts,
            "problems": [
                {"path": str(found.path), "what": found.what, "message": found.message, "severity": found.severity}
                for found in self.problems
            ],
        }

    def to_text(self) -> str:
        """One line a problem and a last line that counts."""
        lines = [f"{'note: ' if found.severity == 'note' else ''}{found}" for found in self.problems]
        many = f"{self.receipts} receipt{'' if self.receipts == 1 else 's'} of {', '.join(self.campaigns) or 'nothing'}"
        lines.append(f"{many}: {f'{len(self.errors)} wrong' if self.errors else 'whole'}")
        return "\n".join(lines)


def campaigns(campaign_dirs: Iterable[Path]) -> Report:
    """Verify several campaign folders."""
    report = Report()
    for campaign_dir in campaign_dirs:
        report.campaigns.append(campaign_dir.name)
        report.receipts += sum(1 for _ in campaign_dir.glob("receipts/*/*.json"))
        report.problems += campaign(campaign_dir)
    return report


def campaign(campaign_dir: Path, *, extra: bool = True) -> list[Problem]:
    """Every problem of a campaign folder. `extra=False` leaves out the checks that other rooms added."""
    found: list[Problem] = []
    known: dict[str, Receipt] = {}
    for path in _entries(campaign_dir / "receipts", found):
        problems, made = receipt(path, campaign_dir.name)
        found += problems
        if made is not None:
            if made.id in known:
                found.append(Problem(path, "id", f"the id {made.id} stands twice: a {known[made.id].kind} has it too"))
            known[made.id] = made
    found += _references(campaign_dir, known)
    found += records.problems(campaign_dir, known)
    told = [str(problem.path) for problem in found if problem.path.name == records.NAME]
    if extra:
        for name, check in sorted(_CHECKS.items()):
            try:
                more = list(check(campaign_dir))
            except LabError as error:
                more = [Problem(campaign_dir, name, str(error))]
            # a record that cannot be read stops the other checks too; it is told once
            found += [problem for problem in more if not any(path in str(problem) for path in told)]
    return found


def _entries(folder: Path, found: list[Problem]) -> Iterator[Path]:
    """Receipt files; whatever else lies there is reported."""
    if not folder.is_dir():
        return
    for kind_dir in _listed(folder, found):
        if not kind_dir.is_dir():
            found.append(_stray(kind_dir))
            continue
        names = {path.name for path in _listed(kind_dir, found)}
        for path in _listed(kind_dir, found):
            if path.suffix == ".json" and not path.name.startswith("."):
                yield path
            elif not (path.suffix == ".parquet" and f"{path.stem}.json" in names):
                found.append(_stray(path))


def _listed(folder: Path, found: list[Problem]) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        if not any(problem.path == folder for problem in found):
            found.append(Problem(folder, "unreadable", f"cannot be listed: {error.strerror}"))
        return []


def _stray(path: Path) -> Problem:
    if _TEMPORARY.match(path.name):
        return Problem(path, "temporary", "a temporary file of a write that did not end; it can be deleted", "note")
    if path.name == ".lock":
        return Problem(path, "lock", "the writers' lock; it can be deleted", "note")
    if path.suffix == ".parquet":
        return Problem(
            path, "orphan", "rows without a receipt, from a write that did not end; it can be deleted", "note"
        )
    return Problem(path, "stray", "is no receipt and does not belong here")


def receipt(path: Path, campaign_name: str | None = None) -> tuple[list[Problem], Receipt | None]:
    """Verify one receipt file and its Parquet file; the parsed receipt unless it cannot be parsed."""
    try:
        content = path.read_bytes()
        value = parse_json(content)
    except OSError as error:
        return [Problem(path, "unreadable", f"cannot be read: {error.strerror}")], None
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        return [Problem(path, "json", f"is not a receipt: {why}")], None
    if not isinstance(value, dict):
        return [Problem(path, "json", f"is not a receipt: it must be an object, not {type(value).__name__}")], None
    found = list(_bytes_problems(path, content, value))
    schema, kind_name = value.get("schema"), value.get("kind")
    if schema != SCHEMA:
        return [*found, Problem(path, "schema", f"its schema is {schema!r}; this version reads {SCHEMA!r}")], None
    try:
        made = Receipt.model_validate(value)
    except (ValidationError, RecursionError) as error:
        return [*found, Problem(path, "schema", _first(error))], None
    if made.id != path.stem:
        found.append(Problem(path, "id", f"its id is {made.id!r}, its file's name {path.stem!r}"))
    if kind_name != path.parent.name:
        found.append(
            Problem(path, "kind", f"is of kind {kind_name!r} and stands in the folder of {path.parent.name!r}")
        )
    if campaign_name is not None and made.campaign != campaign_name:
        found.append(Problem(path, "campaign", f"belongs to campaign {made.campaign!r}, stands in {campaign_name!r}"))
    found += _rows_problems(path, made)
    found += [Problem(path, "leak", f"field {where} holds {what}; it must be redacted") for where, what in leaks(value)]
    return found, made


def _first(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    first = error.errors()[0]
    return f"field {'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _bytes_problems(path: Path, content: bytes, value: dict[str, Any]) -> Iterator[Problem]:
    """The file must be the canonical bytes and LF, and hash to its digest."""
    try:
        canonical = _is_canonical(content, value)
        if not canonical:
            yield Problem(path, "bytes", "its bytes are not the canonical ones: it was edited or damaged")
        expected = _digest(content, value, canonical) if value.get("digest") is not None else None
    except (NotCanonical, RecursionError, ValueError) as error:
        yield Problem(path, "bytes", f"its value has no canonical bytes: {error}")
        return
    if expected is None:
        yield Problem(path, "digest", "has no digest")
    elif value["digest"] != expected:
        yield Problem(path, "digest", f"its content has digest {expected}, it says {str(value['digest'])[:80]}")


def _digest(content: bytes, value: dict[str, Any], canonical: bool) -> str:
    """`digest_of(value)`; from the file's own bytes where they are canonical, which is much quicker."""
    member = f'"digest":{json.dumps(value["digest"])},'.encode()
    if canonical and content.count(member) == 1:
        return "sha256:" + hashlib.sha256(content.replace(member, b"")[:-1]).hexdigest()
    return digest_of(value)


def _is_canonical(content: bytes, value: Any) -> bool:
    if not content.endswith(b"\n"):
        return False
    if not _ODD_NUMBER.search(content) and _fast_bytes(value) == content[:-1]:
        return True
    return canonical_bytes(value) + b"\n" == content


def _fast_bytes(value: Any) -> bytes | None:
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode() if text.isascii() or max(text) < _FIRST_SURROGATE else None
    except (ValueError, RecursionError):
        return None


def _rows_problems(path: Path, made: Receipt) -> Iterator[Problem]:
    its_kind = load_all().get(made.kind)
    if its_kind is None:
        known = ", ".join(sorted(load_all()))
        yield Problem(path, "kind", f"kind {made.kind!r} is not known to this version (valid: {known})")
        return
    if made.kind_version > its_kind.version:
        yield Problem(
            path,
            "kind",
            f"{made.kind} version {made.kind_version} is newer than {its_kind.version}, the newest known here",
        )
        return
    rows: list[dict[str, Any]]
    if isinstance(made.rows, RowsFile):
        beside = path.with_name(made.rows.name)
        try:
            actual = hashlib.sha256(beside.read_bytes()).hexdigest()
            if actual != made.rows.sha256:
                yield Problem(beside, "parquet", f"its sha256 is {actual}, its receipt says {made.rows.sha256}")
                return
            rows = from_table(its_kind.row, read_parquet(path, made.rows.name, its_kind))
        except OSError as error:
            yield Problem(beside, "parquet", f"cannot be read: {error.strerror}; it holds the rows of {path.name}")
            return
        except (BadFile, pa.ArrowException, ValueError) as error:
            yield Problem(
                beside, "parquet", f"does not hold the rows of a {made.kind} receipt: {' '.join(str(error).split())}"
            )
            return
        if len(rows) != made.rows.count:
            yield Problem(beside, "parquet", f"holds {len(rows)} rows, its receipt says {made.rows.count}")
    else:
        rows = made.rows
    if made.kind_version < its_kind.version:
        return  # rows of an older version are held by their digest; today's model is not theirs
    for number, row in enumerate(rows):
        try:
            its_kind.row.model_validate(row)
        except ValidationError as error:
            yield Problem(path, "rows", f"row {number}: {_first(error)}")
            return


def _references(campaign_dir: Path, known: dict[str, Receipt]) -> Iterator[Problem]:
    for made in known.values():
        path = campaign_dir / "receipts" / made.kind / f"{made.id}.json"
        if made.supersedes is not None:
            target = known.get(made.supersedes)
            if made.supersedes == made.id:
                yield Problem(path, "supersedes", "supersedes itself")
            elif target is None:
                yield Problem(
                    path, "supersedes", f"supersedes {made.supersedes!r}, which is no receipt of this campaign"
                )
            elif target.kind != made.kind:
                yield Problem(path, "supersedes", f"is a {made.kind} and supersedes {target.id}, a {target.kind}")
        if made.kind == "retraction" and isinstance(made.rows, list):
            for row in made.rows:
                if row.get("retracts") not in known:
                    yield Problem(
                        path, "retracts", f"retracts {row.get('retracts')!r}, which is no receipt of this campaign"
                    )
