"""Words for JSON schemas: plain dicts, said briefly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = Mapping[str, Any]

ANYTHING: Schema = {}
NOTHING: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
#: Nothing that is asked may hold a NUL.
ASKED: Schema = {"type": "string", "pattern": r"^[^\u0000]*$"}
FLAG: Schema = {"type": "boolean"}
#: Heat's flags are words as well.
WORD_FLAG: Schema = {"type": ["boolean", "string"], "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
#: Of what is counted without end.
COUNTED: Schema = {**WHOLE, "maximum": 2**63 - 1}
NUMBER: Schema = {"type": "number"}
#: Any keys, any values.
MAP: Schema = {"type": "object"}
ID: Schema = {"type": "string", "minLength": 1}
TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}
#: Keystone's, to the microsecond.
FINE_TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}


def ref(name: str) -> Schema:
    """One of the document's own schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(needed: Mapping[str, Schema], **may: Schema) -> Schema:
    """An object of exactly these: what an answer holds."""
    return {
        "type": "object",
        "properties": {**needed, **may},
        "required": list(needed),
        "additionalProperties": False,
    }


def request(needed: Mapping[str, Schema] | None = None, **may: Schema) -> dict[str, Any]:
    """An object of at least these: what is asked may say more, which is ignored."""
    needed = needed or {}
    said: dict[str, Any] = {"type": "object", "properties": {**needed, **may}}
    return {**said, "required": list(needed)} if needed else said


def closed(schema: Schema) -> Schema:
    """And of no others."""
    return {**schema, "additionalProperties": False}


def listed(each: Schema) -> Schema:
    return {"type": "array", "items": each}


def by_name(each: Schema) -> Schema:
    """An object whose keys are names."""
    return {"type": "object", "additionalProperties": each}


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def maybe(schema: Schema) -> Schema:
    """Or null."""
    if "$ref" in schema:
        return {"anyOf": [schema, NOTHING]}
    kinds = schema["type"]
    said = {**schema, "type": [kinds, "null"] if isinstance(kinds, str) else [*kinds, "null"]}
    return {**said, "enum": [*said["enum"], None]} if "enum" in said else said


def text(longest: int, least: int = 0) -> Schema:
    return {**ASKED, "minLength": least, "maxLength": longest}


def under(name: str, schema: Schema) -> Schema:
    """An answer that holds one thing under its noun."""
    return record({name: schema})


def told(schema: Schema, words: str) -> Schema:
    """With a description."""
    return {**schema, "description": words}


def merged(parts: Iterable[Mapping[str, Schema]]) -> dict[str, Schema]:
    """Raises ValueError for a name that is given twice."""
    found: dict[str, Schema] = {}
    for part in parts:
        if twice := found.keys() & part.keys():
            raise ValueError(f"two schemas called {', '.join(sorted(twice))}")
        found |= part
    return found
