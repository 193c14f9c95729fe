"""Whether the value of a fact's SQL is read from a column, or only typed into the query.

DuckDB parses the query (`json_serialize_sql`; nothing is run). The value's expression must lead to a
column of a view, through names that a subquery or a `WITH` gives, or count rows. Arithmetic that
keeps a column and cancels it (`max(x) * 0 + 999`) cannot be told from a unit's conversion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_NOT_VALUES = {"value", "receipts", "receipt", "n", "unit", "flag"}


def is_typed(query: str, connection: Any) -> bool:
    """Whether no column enters the value that a query selects, in any part of a UNION."""
    parsed = json.loads(connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()[0])
    if parsed.get("error") or not parsed.get("statements"):
        return False  # the query's own error says more
    return any(not _reads(node, None, {}) for node in _parts(parsed["statements"][0]["node"]))


def _parts(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The SELECTs of a UNION, or the one that there is; each keeps the `WITH` around it."""
    children = node.get("children") or [child for child in (node.get("left"), node.get("right")) if child]
    if node.get("type") != "SET_OPERATION_NODE" or not children:
        yield node
        return
    for child in children:
        for part in _parts(child):
            outer, inner = node["cte_map"]["map"], part.get("cte_map", {}).get("map", [])
            yield {**part, "cte_map": {"map": [*outer, *inner]}}


def _reads(node: dict[str, Any], name: str | None, around: dict[str, Any]) -> bool:
    """Whether a column enters `name` (the fact's value if None) of a SELECT."""
    if node.get("type") != "SELECT_NODE":
        return True  # recursion and the like: not told apart
    named = {**around, **{entry["key"]: entry["value"]["query_node"] for entry in node["cte_map"]["map"]}}
    chosen = [item for item in node["select_list"] if _called(item, name)]
    if not chosen and name is None:
        chosen = [item for item in node["select_list"] if _name_of(item) not in _NOT_VALUES]
    if not chosen:
        chosen = [item for item in node["select_list"] if item["class"] == "STAR"]
    if not chosen:
        return True  # a column's own alias list: not told apart
    sources = list(_sources(node.get("from_table") or {}, named))
    return any(_holds(item, sources, named) for item in chosen)


def _called(item: dict[str, Any], name: str | None) -> bool:
    return _name_of(item) == (name or "value").lower()


def _name_of(item: dict[str, Any]) -> str:
    return str(item.get("alias") or (item.get("column_names") or [""])[-1]).lower()


def _sources(
    table: dict[str, Any], named: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any] | None, dict[str, Any]]]:
    """What a FROM reads: (its name, its query or None for a view, the queries it may name)."""
    kind = table.get("type")
    if kind == "JOIN":
        yield from _sources(table["left"], named)
        yield from _sources(table["right"], named)
    elif kind == "SUBQUERY":
        yield str(table.get("alias", "")).lower(), table["subquery"]["node"], named
    elif kind == "BASE_TABLE":
        query = named.get(table["table_name"])
        inside = {key: value for key, value in named.items() if key != table["table_name"]}
        yield str(table.get("alias") or table["table_name"]).lower(), query, inside
    elif kind not in (None, "EMPTY", "EXPRESSION_LIST"):
        yield "", None, named


def _holds(
    expression: Any, sources: list[tuple[str, dict[str, Any] | None, dict[str, Any]]], named: dict[str, Any]
) -> bool:
    if isinstance(expression, list):
        return any(_holds(item, sources, named) for item in expression)
    if not isinstance(expression, dict):
        return False
    if expression.get("class") == "SUBQUERY":
        return any(_reads_first(part, named) for part in _parts(expression["subquery"]["node"]))
    if expression.get("function_name") == "count_star":
        return bool(sources)
    if expression.get("class") in ("COLUMN_REF", "STAR"):
        names = [part.lower() for part in expression.get("column_names", [])]
        column = names[-1] if names else None
        for alias, query, inside in sources:
            if len(names) > 1 and alias and alias != names[-2]:
                continue
            if query is None or any(_reads(part, column, inside) for part in _parts(query)):
                return True
        return False
    return any(_holds(value, sources, named) for key, value in expression.items() if key not in ("filter", "order_bys"))


def _reads_first(node: dict[str, Any], around: dict[str, Any]) -> bool:
    """Whether a column enters the one value of a scalar subquery."""
    if node.get("type") != "SELECT_NODE":
        return True
    named = {**around, **{entry["key"]: entry["value"]["query_node"] for entry in node["cte_map"]["map"]}}
    return _holds(node["select_list"], list(_sources(node.get("from_table") or {}, named)), named)
