"""What a checkpoint holds, read from `config.json` and the safetensors headers, never from a model card."""

from lanelab.checkpoint.facts import EXPERTS, Entry, Facts
from lanelab.checkpoint.load import load, names
from lanelab.checkpoint.shape import Attention, Shape, shape_of

__all__ = ["EXPERTS", "Attention", "Entry", "Facts", "Shape", "load", "names", "shape_of"]
