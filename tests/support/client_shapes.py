"""
Writes the client's types of objects from the OpenAPI document, which is made of the server's types.

``make shapes`` runs it. ``tests/client/test_shapes.py`` checks that the file is current.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from support.openapi import openapi_document

FILE = Path(__file__).parents[2] / "client" / "src" / "stoker_client" / "shapes.py"
#: The client's names of the types of which it reads many members; its other objects are plain dictionaries.
NAMES = {
    "DeploymentRun": "Run",
    "EventDetail": "Event",
    "GraphNode": "GraphNode",
    "OutputChunk": "LogChunk",
    "OutputGroup": "OutputGroup",
    "ResourceChange": "Change",
    "RunChange": "RunChange",
    "ShownCheck": "Check",
    "ShownServer": "Server",
    "SoftwareDeployment": "Deployment",
    "SoftwareTrigger": "Trigger",
    "StackDetail": "Stack",
    "StackResource": "Resource",
    "TriggerTarget": "Target",
}
_HEAD = '''"""
Types of the API's objects: dictionaries with known keys. `make shapes` writes this file from the OpenAPI document.

No key is certain: lists omit some, and Heat has none of Stoker's own.
"""

from __future__ import annotations

from typing import Any, TypedDict
'''
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def render() -> str:
    """Return the text of the module ``stoker_client.shapes``."""
    schemas = openapi_document()["components"]["schemas"]
    shapes = sorted(NAMES.items(), key=lambda names: names[1])
    return _HEAD + "".join(f"\n\n{_class(name, type_name, schemas)}" for type_name, name in shapes)


def _class(name: str, type_name: str, schemas: dict[str, Any]) -> str:
    schema = schemas[type_name]
    members = [f"    {member}: {_type(part, schemas)}\n" for member, part in schema["properties"].items()]
    return "".join([f"class {name}(TypedDict, total=False):\n", _docstring(schema.get("description", "")), *members])


def _docstring(text: str) -> str:
    """Return a docstring with an empty line, or "" for a type without a description."""
    lines = textwrap.wrap(text.replace("\\", "\\\\").rstrip(".") + ".", 116) if text else []
    if not lines:
        return ""
    docstring = f'"""{lines[0]}"""' if len(lines) == 1 and len(lines[0]) < 110 else "\n".join(['"""', *lines, '"""'])
    return f"{textwrap.indent(docstring, '    ')}\n\n"


def _type(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return the annotation of a schema's values."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return NAMES.get(name) or _type(schemas[name], schemas)
    if "enum" in schema:
        return _union(type(value).__name__.replace("NoneType", "None") for value in schema["enum"])
    if "anyOf" in schema:
        return _union(_type(part, schemas) for part in schema["anyOf"])
    kinds = schema.get("type", "any")
    return _union(_simple_type(kind, schema, schemas) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _simple_type(kind: str, schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    if kind == "array":
        return f"list[{_type(schema.get('items', {}), schemas)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values, schemas) if isinstance(values, dict) else 'Any'}]"
    return _SIMPLE.get(kind, "Any")


def _union(types: Any) -> str:
    """Join annotations, each once; ``Any`` includes the others, and ``None`` comes last."""
    names = dict.fromkeys(name for part in types for name in part.split(" | "))
    if "Any" in names:
        return "Any"
    return " | ".join(sorted(names, key=lambda name: name == "None"))


if __name__ == "__main__":
    FILE.write_text(render())
    sys.stdout.write(f"{FILE}\n")
