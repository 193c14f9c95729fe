"""Writing files so that a crash at any moment leaves either the old file or the new one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from lanelab.errors import NoSpace

_REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO,
            errno.ENOTDIR, errno.ENAMETOOLONG}  # fmt: skip
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}


def write_atomic(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write by temporary file, fsync and rename, then fsync the folder.

    With `replace=False` an existing file is never touched: `FileExistsError`. A write that is killed
    can leave a temporary file `.<name>.<8 hex>.tmp`, which nobody reads and anybody may delete.
    Raises `NoSpace` when the file system has no room or refuses.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with refusals(path):
        try:
            with open(temporary, "xb", buffering=0) as file:
                write_all(file.fileno(), content)
                os.fsync(file.fileno())
            if replace:
                temporary.replace(path)
            else:
                _put_new(temporary, path)
            sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _put_new(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # a file system without hard links: the writers' lock keeps others of ours out meanwhile
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        temporary.replace(path)


def write_all(handle: int, content: bytes) -> None:
    """Write all bytes to a file descriptor; a disk that fills up half-way raises `OSError`."""
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def make_folder(folder: Path) -> None:
    """Make a folder and its parents. Raises `NoSpace` when the file system refuses."""
    with refusals(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NoSpace(folder, "there is a file of that name, a folder is needed") from error


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turns a file system's refusal into `NoSpace`."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in _REFUSED:
            raise NoSpace(path, error.strerror or str(error)) from error
        raise


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """One writer at a time in a folder; waits. The lock dies with its process and leaves no file."""
    make_folder(folder)
    with refusals(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
