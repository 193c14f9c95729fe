"""A model's facts from wherever they stand: `data/models/<name>`, a folder, or a safetensors file.

Three ways, the best that is there: safetensors headers and config.json; a `model.yaml` sheet (facts
of a checkpoint that is not here, with sources); a lone config.json, whose bytes are then counted
from its shape.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from lanelab import paths
from lanelab.checkpoint import count
from lanelab.checkpoint.dtypes import HEADER_BITS, plain_name
from lanelab.checkpoint.facts import EXPERTS, ROLES, Disagreement, Entry, Facts
from lanelab.checkpoint.header import Tensor, shards, tensors
from lanelab.checkpoint.roles import is_scale, role_of
from lanelab.checkpoint.shape import BadConfig, Shape, shape_of
from lanelab.errors import BadFile, LabError, NotFound
from lanelab.yamlfile import read_yaml

SHEET = "model.yaml"
CONFIG = "config.json"
_HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]*/[\w.-]+$")


class NotYet(LabError):
    """A hub id was given; only local models are read so far. Data: `name`."""


class Bytes(BaseModel):
    """Bytes of a part that only a source's word gives."""

    model_config = ConfigDict(extra="forbid")

    bytes: int
    source: str
    says: str | None = None


class Sheet(BaseModel):
    """`model.yaml`: facts of a checkpoint that is not here, each with its source."""

    model_config = ConfigDict(extra="forbid")

    name: str
    title: str
    source: str
    config: dict[str, Any]
    stored: dict[str, str]  # role: dtype
    stored_source: str
    kv_dtype: str = "bf16"
    checkpoint: Bytes | None = None
    nonexpert_loaded: Bytes | None = None
    disagreements: list[Disagreement] = []


def names() -> list[str]:
    """Models under data/models."""
    folder = paths.data("models")
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def load(name_or_path: str) -> Facts:
    """A model's facts. Raises `NotFound`, `BadFile`, `BadConfig`, `NotYet`."""
    named = paths.data("models", name_or_path) if re.fullmatch(r"[\w.-]+", name_or_path) else None
    if named and name_or_path not in {".", ".."} and named.is_dir():
        return from_folder(named, name_or_path)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return from_folder(path, path.resolve().name)
    if path.is_file():
        if path.suffix == ".safetensors":
            return from_headers(path, path.parent / CONFIG, path.stem)
        if path.name == CONFIG:
            return from_config(path, path.resolve().parent.name)
        raise BadFile(path, "is no model: give a folder, a .safetensors file or a config.json")
    if _HUB_ID.match(name_or_path) and not name_or_path.startswith((".", "/")):
        raise NotYet(
            f"{name_or_path!r} looks like a hub id, and those are not read yet: give a name under data/models "
            f"({', '.join(names()) or 'none yet'}) or the path of a local checkpoint",
            name=name_or_path,
        )
    raise NotFound("model", name_or_path, names(), "or give the path of a checkpoint")


def from_folder(folder: Path, name: str) -> Facts:
    """The facts of a folder, by the best source in it."""
    if shards(folder):
        return from_headers(folder, folder / CONFIG, name)
    if (folder / SHEET).is_file():
        return from_sheet(folder / SHEET)
    if (folder / CONFIG).is_file():
        return from_config(folder / CONFIG, name)
    raise BadFile(folder, f"holds no model: neither safetensors nor {SHEET} nor {CONFIG}")


def read_config(path: Path) -> dict[str, Any]:
    """A parsed config.json. Raises `BadFile`."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise BadFile(path, f"is not JSON: {error.msg}", line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadFile(path, f"must be an object, not {type(value).__name__}")
    return value


def from_config(path: Path, name: str) -> Facts:
    """Facts counted from a lone config.json; stored types are those that it names."""
    config = read_config(path)
    shape = shape_of(config, str(path))
    stored = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(
        str(config.get("dtype") or config.get("torch_dtype") or "bfloat16"), "bf16"
    )
    warnings = [] if shape.known else [_unknown(shape)]
    if config.get("quantization_config"):
        warnings.append(
            "quantization_config stands in config.json, but without headers the bytes are counted unquantised"
        )
    return Facts(
        name=name, title=f"{name} ({shape.model_type})", shape=shape, ledger=count.ledger(shape, {}, stored), warnings=warnings,
        kv_dtype=stored,
    )  # fmt: skip


def from_sheet(path: Path) -> Facts:
    """Facts from a sheet: bytes counted from its shape and types, totals as its sources give them."""
    sheet = read_yaml(path, Sheet)
    shape = shape_of(sheet.config, str(path))
    for role in sheet.stored:
        if role not in ROLES:
            raise BadFile(path, f"unknown role {role!r} (valid: {', '.join(ROLES)})", field="stored")
    entries = count.ledger(shape, sheet.stored)
    counted = sum(entry.bytes for entry in entries if entry.role != EXPERTS)
    experts = sum(entry.bytes for entry in entries if entry.role == EXPERTS)
    if sheet.nonexpert_loaded:
        entries.append(_rest(path, "other_loaded", sheet.nonexpert_loaded, counted))
        counted = sheet.nonexpert_loaded.bytes
    if sheet.checkpoint:
        entries.append(_rest(path, "other_on_disk", sheet.checkpoint, counted + experts))
    return Facts(
        name=sheet.name, title=sheet.title, shape=shape, ledger=entries, kv_dtype=sheet.kv_dtype,
        checkpoint_bytes=sheet.checkpoint.bytes if sheet.checkpoint else None,
        nonexpert_loaded_bytes=sheet.nonexpert_loaded.bytes if sheet.nonexpert_loaded else None,
        warnings=[] if shape.known else [_unknown(shape)], disagreements=sheet.disagreements,
    )  # fmt: skip


def _rest(path: Path, role: str, given: Bytes, counted: int) -> Entry:
    if given.bytes < counted:
        raise BadFile(
            path, f"{given.bytes} bytes are less than the {counted} that the config's shape takes", field=role
        )
    says = f"{given.says + '; ' if given.says else ''}given total less what the shape accounts for ({given.source})"
    return Entry(
        role=role, parameters=None, weight_bytes=given.bytes - counted, dtype="mixed", origin="published", says=says
    )


def _unknown(shape: Shape) -> str:
    return f"model_type {shape.model_type!r} is not one that Lane Lab knows: roles go by tensor names, counts are an estimate"


def from_headers(path: Path, config: Path, name: str) -> Facts:
    """Facts from safetensors headers, beside their config.json. Raises `BadFile`, `BadConfig`."""
    if not config.is_file():
        raise BadFile(config, "is needed beside the weights and missing")
    shape = shape_of(read_config(config), str(config))
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])  # parameters, weight bytes, scale bytes
    kinds: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    odd: list[str] = []
    disk = 0
    found = {tensor.name: tensor for tensor in tensors(path)}
    for tensor in found.values():
        disk += tensor.bytes
        role = role_of(tensor.name, shape.layers)
        if role is None:
            odd.append(tensor.name)
            role = "other_loaded"
        if role == "head" and shape.tied_embeddings:
            continue  # a tied head is the embedding written twice
        mine = sums[role]
        if is_scale(tensor.name):
            mine[2] += tensor.bytes
        else:
            mine[0] += _values(tensor, found)
            mine[1] += tensor.bytes
            kinds[role][_stored(tensor, found)] += tensor.bytes
    ledger = [
        Entry(
            role=role,
            parameters=sums[role][0],
            weight_bytes=sums[role][1],
            scale_bytes=sums[role][2],
            dtype=max(kinds[role], key=lambda kind: kinds[role][kind], default="mixed"),
            origin="header",
        )
        for role in ROLES
        if role in sums
    ]
    warnings = [] if shape.known else [_unknown(shape)]
    if odd:
        warnings.append(f"{len(odd)} tensors fit no role and count as other_loaded, the first is {odd[0]!r}")
    if shape.cells:
        experts = sums.get(EXPERTS, [0, 0, 0])
        if experts[1] % shape.cells or not experts[1]:
            raise BadConfig(
                str(config), "n_routed_experts",
                f"{shape.cells} cells ({shape.moe_layers} layers of {shape.experts}) do not divide the {experts[1]} expert bytes in the headers",
            )  # fmt: skip
        if experts[0] != shape.cells * shape.expert_parameters:
            warnings.append(
                f"headers hold {experts[0]:,} routed parameters, the config's shape gives {shape.cells * shape.expert_parameters:,}"
            )
    return Facts(
        name=name, title=f"{name} ({shape.model_type})", shape=shape, ledger=ledger, checkpoint_bytes=disk,
        cell_bytes_measured=True, warnings=warnings,
    )  # fmt: skip


def _packed(tensor: Tensor, all_tensors: dict[str, Tensor]) -> int:
    """Values in one stored element: 2 for four-bit values in bytes, 8 for those in 32-bit words."""
    name = tensor.name
    if tensor.dtype in {"U8", "I8"}:
        stem = name.removesuffix("_blocks").removesuffix(".weight_packed").removesuffix(".weight")
        beside = (
            f"{name}_scale",
            f"{stem}.weight_scale",
            f"{stem}_scales",
            f"{stem}.weight_scale_inv",
            f"{stem}.scales",
        )
        kinds = {all_tensors[other].dtype for other in beside if other in all_tensors}
        if kinds & {"U8", "F8_E8M0", "F8_E4M3"} or name.endswith("_blocks"):
            return 2
    if tensor.dtype in {"I32", "U32"} and name.endswith((".qweight", ".weight_packed")):
        return 8
    return 1


def _values(tensor: Tensor, all_tensors: dict[str, Tensor]) -> int:
    return math.prod(tensor.shape) * _packed(tensor, all_tensors)


def _stored(tensor: Tensor, all_tensors: dict[str, Tensor]) -> str:
    packed = _packed(tensor, all_tensors)
    if packed == 1:
        return plain_name(tensor.dtype)
    return "mxfp4" if packed == 2 else f"int{HEADER_BITS[tensor.dtype] // packed}"
