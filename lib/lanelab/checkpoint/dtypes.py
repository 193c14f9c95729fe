"""How many bytes a parameter takes, by the way it is stored: weights and scales apart.

Block formats keep one scale a block: MXFP4 an E8M0 byte per 32 values, NVFP4 an E4M3 byte per 16,
block FP8 a float32 per 128×128 tile, group int4 a 16-bit scale per 128 values.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanelab.errors import LabError


class UnknownDtype(LabError):
    """No such storage format. Data: `dtype`, `valid`."""


@dataclass(frozen=True)
class Dtype:
    """Bits a value, and bytes of one scale for `block` values (0: none)."""

    name: str
    bits: int
    scale_bytes: int = 0
    block: int = 0

    def weight_bytes(self, parameters: int) -> int:
        """Bytes of the values alone; sub-byte values are packed."""
        return -(-parameters * self.bits // 8)

    def scales(self, parameters: int) -> int:
        """Bytes of the scales, partial blocks counted whole."""
        return self.scale_bytes * -(-parameters // self.block) if self.block else 0


DTYPES = {
    dtype.name: dtype
    for dtype in (
        Dtype("fp32", 32), Dtype("bf16", 16), Dtype("fp16", 16),
        Dtype("fp8", 8, 4, 128 * 128), Dtype("int8", 8, 2, 128),
        Dtype("mxfp4", 4, 1, 32), Dtype("nvfp4", 4, 1, 16), Dtype("int4", 4, 2, 128),
    )
}  # fmt: skip

# Bits of the element types that a safetensors header may name.
HEADER_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "BF16": 16, "F16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I8": 8, "U8": 8, "BOOL": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4, "C64": 64,
}  # fmt: skip
_PLAIN = {"F32": "fp32", "BF16": "bf16", "F16": "fp16", "F8_E4M3": "fp8", "F8_E5M2": "fp8", "I8": "int8"}


def dtype(name: str) -> Dtype:
    """The storage format of that name. Raises `UnknownDtype`."""
    if name not in DTYPES:
        raise UnknownDtype(f"unknown dtype {name!r} (valid: {', '.join(DTYPES)})", dtype=name, valid=list(DTYPES))
    return DTYPES[name]


def plain_name(header_name: str) -> str:
    """Our name for a header's element type; the header's own where we have none."""
    return _PLAIN.get(header_name, header_name.lower())
