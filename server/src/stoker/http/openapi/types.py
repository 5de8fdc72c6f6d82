"""JSON schemas of the types of requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from stoker.http.fields import Decoded, Flag

Schema = Mapping[str, Any]
_REF = "#/components/schemas/{name}"


class TypeSchemas:
    """Generates the schemas of types, and gathers those of the named types in ``components``."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._unchecked: dict[str, type] = {}

    def of(self, kind: Any) -> Schema:
        """
        Return the schema of a type, or of an object with exactly the members of a map from names to types.

        Raises ValueError if two types have the same name.
        """
        if isinstance(kind, Mapping):
            return {
                "type": "object",
                "properties": {name: self.of(member) for name, member in kind.items()},
                "required": list(kind),
                "additionalProperties": False,
            }
        if get_origin(kind) in (
            Union,
            UnionType,
        ):  # msgspec refuses several types of objects, because it could not decode them
            choices: Schema = _simplify({"anyOf": [self.of(choice) for choice in get_args(kind)]})
            return choices
        (schema,), components = msgspec.json.schema_components([kind], schema_hook=self._custom, ref_template=_REF)
        self._add(components)
        simple: Schema = _simplify(schema)
        return simple

    def of_query(self, kind: type[msgspec.Struct]) -> Mapping[str, Schema]:
        """Return the schemas of the parameters of a query string."""
        (_,), components = msgspec.json.schema_components([kind], schema_hook=self._custom_of_query, ref_template=_REF)
        properties: Mapping[str, Schema] = components.pop(kind.__name__)["properties"]
        self._add(components)
        return {name: _simplify(_without_null(schema)) for name, schema in properties.items()}

    def _custom(self, kind: type) -> dict[str, Any]:
        if not isinstance(kind, Decoded):
            raise NotImplementedError
        if isinstance(kind.schema, Mapping):
            return dict(kind.schema)
        name = kind.__name__.lstrip("_")
        if self._unchecked.setdefault(name, kind) is not kind:
            raise ValueError(f"two types called {name}")
        if name not in self.components:
            self.components[name] = {}  # the type may contain itself
            description = {"description": kind.__doc__} if kind.__doc__ else {}
            self.components[name] = _simplify({**self.of(kind.schema), **description})
        return {"$ref": _REF.format(name=name)}

    def _custom_of_query(self, kind: type) -> dict[str, Any]:
        return {"type": "boolean"} if kind is Flag else self._custom(kind)

    def _add(self, components: Mapping[str, Schema]) -> None:
        for name, schema in components.items():
            shown = _simplify(schema)
            if self.components.setdefault(name, shown) != shown:
                raise ValueError(f"two types called {name}")


def _simplify(schema: Any) -> Any:
    """Return the schema without titles and null defaults, with ``type`` lists for types that allow null."""
    if isinstance(schema, list):
        return [_simplify(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    simple = {
        key: _simplify(value)
        for key, value in schema.items()
        if not (key == "default" and value is None) and not (key == "title" and isinstance(value, str))
    }
    if isinstance(simple.get("description"), str):
        simple["description"] = " ".join(simple["description"].split()).replace("``", "`")
    choices: list[Any] = simple.get("anyOf", [])
    if len(choices) == 2 and choices[1] == {"type": "null"} and "type" in choices[0]:
        del simple["anyOf"]
        kinds = choices[0]["type"]
        simple |= {**choices[0], "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
        if "enum" in simple:
            simple["enum"] = [*simple["enum"], None]
    return simple


def _without_null(schema: Schema) -> Schema:
    """Return the schema of a parameter, which is absent where the type has None."""
    if "anyOf" not in schema:
        return schema
    choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    bare = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**bare, **choices[0]} if len(choices) == 1 else {**bare, "anyOf": choices}
