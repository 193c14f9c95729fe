"""Headers from outside: what is whole is read, what is not is named in one line."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanelab.checkpoint.header import INDEX, read_header, shards, tensors
from lanelab.errors import BadFile, LabError


def write(
    path: Path, header: Any, data_bytes: int | None = None, *, raw: bytes | None = None, length: int | None = None
) -> Path:
    """A file with that header; its data are a hole in the file."""
    text = raw if raw is not None else json.dumps(header).encode()
    if data_bytes is None:
        data_bytes = max((item["data_offsets"][1] for item in header.values() if "data_offsets" in item), default=0)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text) if length is None else length) + text)
        file.truncate(8 + len(text) + data_bytes)
    return path


def tensor(begin: int, end: int, shape: list[int], dtype: str = "BF16") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = {"__metadata__": {"format": "pt"}, "b": tensor(8, 16, [2, 2]), "a": tensor(0, 8, [4])}


def test_a_good_header(tmp_path: Path) -> None:
    found = read_header(write(tmp_path / "x.safetensors", GOOD))
    assert [(item.name, item.shape, item.bytes) for item in found] == [("a", (4,), 8), ("b", (2, 2), 8)]


def test_it_agrees_with_the_safetensors_library(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy", reason="needs the extra 'mini'").save_file
    import numpy as np

    save_file({"x": np.zeros((3, 5), np.float32), "y": np.zeros((7,), np.uint8)}, tmp_path / "x.safetensors")
    found = {item.name: item for item in read_header(tmp_path / "x.safetensors")}
    assert (found["x"].dtype, found["x"].bytes) == ("F32", 60)
    assert (found["y"].dtype, found["y"].shape) == ("U8", (7,))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "cut in the length": ({"raw": b""}, "truncated"),
    "not JSON": ({"raw": b"{not json"}, "not JSON"),
    "not UTF-8": ({"raw": b"\xff\xfe{}"}, "not JSON"),
    "a list": ({"raw": b"[]"}, "must be an object"),
    "nested deep": ({"raw": b"[" * 100_000}, "not JSON"),
    "length beyond the file": ({"header": GOOD, "length": 5000}, "truncated"),
    "length beyond reason": ({"header": GOOD, "length": 2**63}, "over the limit"),
    "twice": ({"raw": b'{"a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}, "a": {}}'}, "stands twice"),
    "overlap": ({"header": {"a": tensor(0, 8, [4]), "b": tensor(4, 12, [4])}}, "overlaps"),
    "gap": ({"header": {"a": tensor(0, 8, [4]), "b": tensor(10, 18, [4])}}, "gap"),
    "starts late": ({"header": {"a": tensor(2, 10, [4])}}, "gap"),
    "backwards": ({"header": {"a": tensor(8, 0, [4])}, "data_bytes": 8}, "takes 8"),
    "wrong size": ({"header": {"a": tensor(0, 6, [4])}}, "takes 8"),
    "data cut": ({"header": GOOD, "data_bytes": 15}, "the file holds 15"),
    "data too long": ({"header": GOOD, "data_bytes": 17}, "the file holds 17"),
    "unknown dtype": ({"header": {"a": tensor(0, 8, [4], "Q7")}}, "unknown dtype 'Q7'"),
    "dtype missing": ({"raw": b'{"a": {"shape":[1],"data_offsets":[0,1]}}'}, "unknown dtype None"),
    "negative shape": ({"header": {"a": tensor(0, 8, [-4])}}, "whole numbers"),
    "shape is text": ({"raw": b'{"a": {"dtype":"U8","shape":"1","data_offsets":[0,1]}}'}, "list of whole numbers"),
    "offsets are floats": ({"raw": b'{"a": {"dtype":"U8","shape":[1],"data_offsets":[0,1.0]}}'}, "two whole numbers"),
    "entry is a number": ({"raw": b'{"a": 1}'}, "must be an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_header_is_one_line_that_names_the_file(tmp_path: Path, name: str) -> None:
    given_, expected = BAD[name]
    path = tmp_path / "x.safetensors"
    if name == "cut in the length":
        path.write_bytes(b"\x01\x02")
    else:
        write(path, given_.get("header"), given_.get("data_bytes", None if "header" in given_ else 0), **{
            key: value for key, value in given_.items() if key in {"raw", "length"}
        })  # fmt: skip
    with pytest.raises(BadFile) as caught:
        read_header(path)
    text = str(caught.value)
    assert expected in text and "x.safetensors" in text and "\n" not in text


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_give_tensors_or_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    try:
        read_header(path)
    except LabError as error:
        assert "\n" not in str(error)


def test_shards_as_the_index_lists_them(tmp_path: Path) -> None:
    write(tmp_path / "one.safetensors", {"a": tensor(0, 8, [4])})
    write(tmp_path / "two.safetensors", {"b": tensor(0, 8, [4])})
    index = tmp_path / INDEX
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    assert {item.name: item.file for item in tensors(tmp_path)} == {"a": "one.safetensors", "b": "two.safetensors"}


@pytest.mark.parametrize(
    ("weight_map", "expected"),
    [
        ({"a": "one.safetensors", "b": "gone.safetensors"}, "gone.safetensors"),
        ({"a": "../one.safetensors"}, "outside its folder"),
        ({"a": "one.safetensors", "c": "one.safetensors"}, "does not have it"),
        ({"a": "one.safetensors", "b": "twin.safetensors"}, "stands in"),
        ({"a": 1}, "names a file outside its folder"),
    ],
)
def test_an_index_that_lies(tmp_path: Path, weight_map: dict[str, Any], expected: str) -> None:
    for name in ("one", "twin"):
        write(tmp_path / f"{name}.safetensors", {"a": tensor(0, 8, [4])})
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(BadFile, match=expected):
        list(tensors(tmp_path))


@pytest.mark.parametrize("content", ["{", "[]", '{"weight_map": [1]}', '{"weight_map": {"a": {}}}', "{}"])
def test_an_index_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / INDEX).write_text(content)
    with pytest.raises(BadFile):
        shards(tmp_path)


def test_several_files_without_an_index(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"a": tensor(0, 8, [4])})
    write(tmp_path / "b.safetensors", {"b": tensor(0, 8, [4])})
    with pytest.raises(BadFile, match=r"no model\.safetensors\.index\.json"):
        shards(tmp_path)


@pytest.mark.slow
def test_a_trillion_parameters_in_69_shards_take_seconds(tmp_path: Path) -> None:
    """Sparse files with true headers: 70 layers of 384 experts, one tensor an expert and projection."""
    from time import perf_counter

    weight_map: dict[str, str] = {}
    for layer in range(1, 70):
        header: dict[str, Any] = {}
        position, file = 0, f"{layer}.safetensors"
        for expert in range(384):
            for part, shape in (("gate_proj", [2048, 3072]), ("up_proj", [2048, 3072]), ("down_proj", [6144, 1024])):
                name, size = f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight", 2048 * 3072
                header[name] = tensor(position, position + size, shape, "U8")
                weight_map[name] = file
                position += size
        write(tmp_path / file, header)
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    program = (
        "import resource, sys; from pathlib import Path; from lanelab.checkpoint.header import tensors\n"
        "print(sum(item.bytes for item in tensors(Path(sys.argv[1]))), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    start = perf_counter()
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    took = perf_counter() - start
    total, peak_kib = map(int, done.stdout.split())
    assert total == 69 * 384 * 3 * 2048 * 3072
    assert peak_kib < 1024 * 1024
    assert took < 10
