"""Safetensors headers: names, shapes, types and places of tensors, without reading a weight.

A file begins with the header's length (8 bytes, little-endian) and the header, a JSON object of
`name: {dtype, shape, data_offsets: [begin, end]}`; the data follow. The header is data from
outside: its length is held to the file's and to a limit, offsets must tile the data without a gap
or an overlap, and each must be as long as its shape and type say.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanelab.checkpoint.dtypes import HEADER_BITS
from lanelab.errors import BadFile

HEADER_LIMIT_BYTES = 100_000_000  # the limit that the format's own reader sets
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


@dataclass(frozen=True)
class Tensor:
    """One tensor's header entry."""

    name: str
    dtype: str  # as the header spells it: BF16, F8_E4M3, U8 …
    shape: tuple[int, ...]
    bytes: int
    file: str


def read_header(path: Path) -> list[Tensor]:
    """The tensors of one file. Raises `BadFile`, which names file and tensor."""
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            start = file.read(8)
            if len(start) < 8:
                raise BadFile(
                    path, f"truncated: {size} bytes, a safetensors file begins with 8 that give the header's length"
                )
            (length,) = struct.unpack("<Q", start)
            if length > HEADER_LIMIT_BYTES:
                raise BadFile(
                    path, f"header of {length} bytes is over the limit of {HEADER_LIMIT_BYTES}; not safetensors?"
                )
            if 8 + length > size:
                raise BadFile(
                    path, f"truncated: the header should take {length} bytes, the file has {size - 8} after its length"
                )
            text = file.read(length)
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    return _parse(path, text, size - 8 - length)


def _parse(path: Path, text: bytes, data_bytes: int) -> list[Tensor]:
    try:
        header = json.loads(text, object_pairs_hook=lambda pairs: _no_repeats(path, pairs))
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BadFile(path, f"header must be an object, not {type(header).__name__}")
    header.pop("__metadata__", None)
    placed = sorted((_entry(path, name, value) for name, value in header.items()), key=lambda item: item[0])
    position = 0
    for (begin, end), tensor in placed:
        if begin != position:
            what = "overlaps the tensor before it" if begin < position else "leaves a gap before it"
            raise BadFile(path, f"data_offsets begin at {begin}, which {what} (expected {position})", field=tensor.name)
        position = end
    if position != data_bytes:
        raise BadFile(path, f"tensors take {position} bytes, the file holds {data_bytes} after the header")
    return [tensor for _, tensor in placed]


def _no_repeats(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadFile(path, "stands twice in the header", field=key)
        found[key] = value
    return found


def _entry(path: Path, name: str, value: Any) -> tuple[tuple[int, int], Tensor]:
    if not isinstance(value, dict):
        raise BadFile(path, f"must be an object, not {type(value).__name__}", field=name)
    kind, shape, offsets = value.get("dtype"), value.get("shape"), value.get("data_offsets")
    if kind not in HEADER_BITS:
        raise BadFile(path, f"unknown dtype {kind!r} (valid: {', '.join(HEADER_BITS)})", field=name)
    if not isinstance(shape, list) or not all(_natural(size) for size in shape):
        raise BadFile(path, f"shape must be a list of whole numbers, not {shape!r}", field=name)
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_natural(place) for place in offsets):
        raise BadFile(path, f"data_offsets must be two whole numbers, not {offsets!r}", field=name)
    begin, end = offsets
    wanted = -(-math.prod(shape) * HEADER_BITS[kind] // 8)
    if end - begin != wanted:
        raise BadFile(path, f"data_offsets hold {end - begin} bytes, {kind} {shape} takes {wanted}", field=name)
    return (begin, end), Tensor(name, kind, tuple(shape), wanted, path.name)


def _natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def shards(path: Path) -> list[Path]:
    """The safetensors files of a checkpoint folder or file, as its index lists them. Raises `BadFile`."""
    if path.is_file():
        return [path]
    index = path / INDEX
    if index.is_file():
        return _indexed(path, index)
    found = sorted(path.glob("*.safetensors"))
    if len(found) > 1 and not (path / SINGLE).is_file():
        raise BadFile(path, f"holds {len(found)} safetensors files and no {INDEX} that says which belong together")
    return [path / SINGLE] if (path / SINGLE).is_file() else found


def _indexed(folder: Path, index: Path) -> list[Path]:
    try:
        table = json.loads(index.read_bytes())["weight_map"]
        names = sorted(set(table.values()))
    except OSError as error:
        raise BadFile(index, f"cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadFile(index, "holds no weight_map of tensor to file") from error
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise BadFile(index, f"names a file outside its folder: {name!r}", field="weight_map")
        if not (folder / name).is_file():
            raise BadFile(index, f"names the shard {name!r}, which is not there", field="weight_map")
    return [folder / name for name in names]


def tensors(path: Path) -> Iterator[Tensor]:
    """All tensors of a checkpoint; each name once, and those of the index exactly. Raises `BadFile`."""
    seen: dict[str, str] = {}
    for shard in shards(path):
        for tensor in read_header(shard):
            if tensor.name in seen:
                raise BadFile(shard, f"stands in {seen[tensor.name]} too", field=tensor.name)
            seen[tensor.name] = shard.name
            yield tensor
    index = path / INDEX
    if path.is_dir() and index.is_file():
        for name, file in json.loads(index.read_bytes())["weight_map"].items():
            if seen.get(name) != file:
                raise BadFile(index, f"says {file}, whose header does not have it", field=name)
