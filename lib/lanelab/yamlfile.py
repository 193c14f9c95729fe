"""Reading the lab's YAML files: a mistake is named by file, line and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from lanelab.errors import BadFile

# libyaml where PyYAML was built with it: several times faster, the same safe subset
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Model = TypeVar("Model", bound=BaseModel)


def load_yaml(path: Path) -> Any:
    """The file's plain values (safe loader, no repeated keys). Raises `BadFile`."""
    try:
        text = path.read_text(encoding="utf-8")
        _refuse_aliases(path, text)
        node = yaml.compose(text, Loader=LOADER)
        _refuse_repeats(path, node)
        return yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadFile(path, "is not UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        raise BadFile(path, f"is not YAML: {why}", line=mark.line + 1 if mark else None) from error
    except (ValueError, RecursionError) as error:  # a date that no calendar has, a thousand nested brackets
        raise BadFile(path, f"is not YAML of ours: {error}") from error


def read_yaml(path: Path, model: type[Model]) -> Model:
    """The file as a model. Raises `BadFile` with the line and field of the first mistake."""
    value = load_yaml(path)
    if not isinstance(value, dict):
        raise BadFile(path, f"must be a mapping of fields, not {type(value).__name__}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        valid = ""
        if first["type"] == "extra_forbidden":
            valid = f" (valid: {', '.join(sorted(model.model_fields))})" if len(first["loc"]) == 1 else ""
        line = _line_of(path, first["loc"])
        raise BadFile(path, f"{first['msg']}{valid}", line=line, field=field) from error


def _refuse_aliases(path: Path, text: str) -> None:
    """No file of ours needs them, and a few lines of aliases can stand for more than memory holds."""
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise BadFile(
                path,
                f"aliases such as *{event.anchor} are not taken",
                line=mark.line + 1 if (mark := event.start_mark) else None,
            )


def _refuse_repeats(path: Path, node: yaml.Node | None) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise BadFile(path, "this key stands twice", line=key.start_mark.line + 1, field=name)
            seen.add(name)
            _refuse_repeats(path, value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_repeats(path, value)


def _line_of(path: Path, location: tuple[int | str, ...]) -> int | None:
    node = yaml.compose(path.read_text(encoding="utf-8"), Loader=LOADER)
    line: int | None = None
    for part in location:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(part)]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
