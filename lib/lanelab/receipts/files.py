"""Writing files so that a crash at any moment leaves either the old file or the new one."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from lanelab.errors import NoSpace

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EFBIG}


def write_atomic(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write by temporary file, fsync and rename, then fsync the folder.

    With `replace=False` an existing file is never touched: `FileExistsError`.
    Raises `NoSpace` when the file system has no room or refuses.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(path, error.strerror or str(error)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
