"""Import nbformat without the 1.6 s that its dependency takes to build a grammar nobody asks for.

nbformat imports jsonschema; where `rfc3987_syntax` is installed (JupyterLab brings it), jsonschema
imports that too, for the format check of IRIs, and it compiles its grammar on import. Notebooks have
no IRI field. `None` in `sys.modules` is Python's way to say "not to be found", and jsonschema goes on
without that check. The entry is taken away again, so that others can import the module.
"""

from __future__ import annotations

import sys

_SLOW = "rfc3987_syntax"


def import_nbformat() -> None:
    """Import nbformat, quickly; nothing to do if it is there already."""
    if "jsonschema" in sys.modules or _SLOW in sys.modules:
        return
    sys.modules[_SLOW] = None  # type: ignore[assignment]
    try:
        import nbformat  # noqa: F401
    finally:
        sys.modules.pop(_SLOW, None)
