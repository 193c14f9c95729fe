"""Whether the site that stands was built from exactly what is there now.

The key of a build is made from everything that enters it: sources, receipts and facts, notebooks,
publishing code and the renderer. It is kept with a digest of the built files, so that a site that
somebody touched is built again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lanelab.publish.generated import put
from lanelab.publish.site import includes
from lanelab.publish.site.config import SiteFolders
from lanelab.publish.site.notebooks import campaign_files, code_digest

_MADE = {"_site", ".fallback", ".quarto", "notebooks-out", "receipts", "data"}
_MADE_FILES = {"_variables.yml", "_campaigns.md", "_quarto-published.yml"}


def build_key(folders: SiteFolders, campaigns: Iterable[str], renderer: str, url: str | None) -> str:
    """Hex digest of all that a build reads."""
    files = [path for path in sorted(folders.source.rglob("*")) if path.is_file() and not _made(path, folders)]
    files += sorted((folders.lab / "notebooks").glob("*.ipynb"))
    files += sorted(path for name in ("machines", "models") for path in (folders.lab / "data" / name).rglob("*.yaml"))
    for name in campaigns:
        files += campaign_files(folders.campaign(name))
    digest = hashlib.sha256(json.dumps([code_digest(whole=True), renderer, url]).encode())
    _feed(digest, files, folders.lab)
    return digest.hexdigest()


def tree_digest(folder: Path) -> str:
    """Hex digest of the names and bytes of all files below a folder."""
    digest = hashlib.sha256()
    _feed(digest, (path for path in sorted(folder.rglob("*")) if path.is_file()), folder)
    return digest.hexdigest()


def stands(folders: SiteFolders, key: str) -> dict[str, Any] | None:
    """What was noted about the site that stands, if it is the one of that key, whole."""
    note = folders.cache / "built.json"
    if not note.is_file():
        return None
    try:
        noted: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
    except ValueError:
        return None
    same = noted.get("key") == key and noted.get("tree") == tree_digest(folders.built)
    return noted if same else None


def note(folders: SiteFolders, key: str, about: dict[str, Any]) -> None:
    """Note what the site that stands was built from."""
    text = json.dumps({**about, "key": key, "tree": tree_digest(folders.built)}, indent=1) + "\n"
    put(folders.cache / "built.json", text)


def _made(path: Path, folders: SiteFolders) -> bool:
    parts = path.relative_to(folders.source).parts
    if parts[-1] == "_metadata.yml":
        return includes.made(path)
    return parts[0] in _MADE or parts[-1] in _MADE_FILES or parts[:2] == ("posts", "here")


def _feed(digest: Any, files: Iterable[Path], base: Path) -> None:
    for path in files:
        digest.update(path.relative_to(base).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
