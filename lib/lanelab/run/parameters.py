"""A notebook's parameters, read from its source and checked before a kernel starts.

The cell tagged `parameters` assigns the defaults. It is parsed, never run: a default counts when
`ast.literal_eval` reads it. The default's type decides how a text from the command line is read:

| default | text |
|---|---|
| str | as it is |
| bool | `true` or `false` |
| int | an integral number; `1e6` is 1000000 |
| float | a finite number |
| list, tuple | a JSON array |
| dict | a JSON object |
| None | JSON if it reads as JSON, else the text |
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from nbformat import NotebookNode

from lanelab.errors import LabError, NotFound
from lanelab.run.errors import Refused

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_LARGEST_EXPONENT = 300  # beyond it "an integral number" is a typing error that would fill memory
UNREADABLE = object()


class BadParameter(Refused):
    """A value does not fit its parameter's type. Data: `name`, `value`, `type`."""


class UnknownParameter(Refused, NotFound):
    """The notebook has no parameter of that name. Data: `name`, `valid`."""


class NoParametersCell(Refused):
    """Parameters were passed to a notebook without a tagged cell. Data: `looks_like`."""


@dataclass(frozen=True)
class Parameter:
    """One assignment of the parameters cell; `default` is `UNREADABLE` if it is no literal."""

    name: str
    default: Any

    @property
    def type(self) -> str:
        """The name of the default's type."""
        return "unknown" if self.default is UNREADABLE else type(self.default).__name__


def assignments(source: str) -> list[Parameter] | None:
    """The cell's simple assignments in order, the last of a name counts; None if it is no plain Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, Parameter] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                found[target.id] = Parameter(target.id, _literal(value))
    return list(found.values())


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return UNREADABLE


def parameters_cell(notebook: NotebookNode) -> NotebookNode | None:
    """The first code cell tagged `parameters`."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", []):
            return cell
    return None


def declared(notebook: NotebookNode) -> dict[str, Parameter]:
    """The notebook's parameters by name; empty without a tagged cell. Raises `BadParameter`."""
    cell = parameters_cell(notebook)
    if cell is None:
        return {}
    found = assignments(cell.source)
    if found is None:
        raise BadParameter(
            f"cell {cell.get('id')!r}, tagged 'parameters', is no plain Python: it may hold assignments of literals"
        )
    return {parameter.name: parameter for parameter in found}


def chosen(notebook: NotebookNode, given: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """The typed values to inject: `given` are values, `texts` come from a command line.

    Raises `UnknownParameter`, `BadParameter`, `NoParametersCell`.
    """
    passed = [*given, *texts]
    if not passed:
        return {}
    if parameters_cell(notebook) is None:
        raise _no_cell(notebook, passed)
    known = declared(notebook)
    for name in passed:
        if name not in known:
            raise UnknownParameter("parameter", name, known)
    values = {name: fit(known[name], value) for name, value in given.items()}
    values.update({name: read_text(known[name], text) for name, text in texts.items()})
    return values


def _no_cell(notebook: NotebookNode, passed: list[str]) -> NoParametersCell:
    best, best_score = None, (0, 0)
    for cell in notebook.cells:
        found = assignments(cell.source) if cell.cell_type == "code" else None
        if not found or len(found) != len(ast.parse(cell.source).body):
            continue
        literal = [parameter.name for parameter in found if parameter.default is not UNREADABLE]
        score = (len(set(literal) & set(passed)), len(literal))
        if len(literal) == len(found) and score > best_score:
            best, best_score = cell, score
    looks_like = best.get("id") if best is not None else None
    hint = f"; cell {looks_like!r} looks like it" if looks_like else ""
    return NoParametersCell(
        f"no cell is tagged 'parameters'{hint}: tag it, or pass no parameters (passed: {', '.join(passed)})",
        looks_like=looks_like,
        passed=passed,
    )


def read_text(parameter: Parameter, text: str) -> Any:
    """A command line's text as the parameter's type. Raises `BadParameter`."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad(parameter, text, "text in UTF-8") from None
    reader = _READERS.get(parameter.type)
    if reader is None:
        raise _untyped(parameter)
    value = reader(text)
    if value is UNREADABLE:
        raise _bad(parameter, text, _WANTED[parameter.type])
    return value


def fit(parameter: Parameter, value: Any) -> Any:
    """A typed value, if it fits the parameter's type (an int fits a float). Raises `BadParameter`."""
    kind = parameter.type
    if kind not in _READERS:
        raise _untyped(parameter)
    if isinstance(value, tuple):
        value = list(value)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wanted: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float, "dict": dict, "list": list}
    expected = wanted.get("list" if kind == "tuple" else kind, object)
    if not isinstance(value, expected) or (kind == "int" and isinstance(value, bool)):
        raise _bad(parameter, value, _WANTED[kind])
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise _bad(parameter, value, "a value that JSON can hold") from None
    return value


def _bad(parameter: Parameter, value: Any, wanted: str) -> BadParameter:
    shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "…"
    return BadParameter(
        f"parameter {parameter.name!r}: {shown} is no {parameter.type} (valid: {wanted};"
        f" default {parameter.default!r})",
        name=parameter.name, value=str(value), type=parameter.type,
    )  # fmt: skip


def _untyped(parameter: Parameter) -> LabError:
    return BadParameter(
        f"parameter {parameter.name!r}: its default is no literal of JSON's types, so no value can be checked against"
        " it; edit the notebook",
        name=parameter.name,
        type=parameter.type,
    )


def _read_bool(text: str) -> Any:
    return {"true": True, "false": False}.get(text, UNREADABLE)


def _read_int(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    number = _decimal(text)
    if number is None or abs(number.adjusted()) > _LARGEST_EXPONENT or number != number.to_integral_value():
        return UNREADABLE
    return int(number)


def _decimal(text: str) -> Decimal | None:
    if "_" in text or text != text.strip():
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _read_float(text: str) -> Any:
    number = _decimal(text)
    if number is None:
        return UNREADABLE
    value = float(number)
    return value if math.isfinite(value) else UNREADABLE


def _read_json(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return UNREADABLE


def _read_list(text: str) -> Any:
    value = _read_json(text)
    return value if isinstance(value, list) else UNREADABLE


def _read_dict(text: str) -> Any:
    value = _read_json(text)
    return value if isinstance(value, dict) else UNREADABLE


def _read_any(text: str) -> Any:
    value = _read_json(text)
    return text if value is UNREADABLE else value


_READERS = {
    "str": lambda text: text, "bool": _read_bool, "int": _read_int, "float": _read_float,
    "list": _read_list, "tuple": _read_list, "dict": _read_dict, "NoneType": _read_any,
}  # fmt: skip
_WANTED = {
    "str": "a text", "bool": "true or false", "int": "an integral number such as 16 or 1e6", "float": "a finite number",
    "list": "a JSON array such as [1, 2]", "tuple": "a JSON array such as [1, 2]",
    "dict": 'a JSON object such as {"a": 1}', "NoneType": "any JSON value, or a text",
}  # fmt: skip
