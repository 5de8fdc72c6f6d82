"""Helpers that build JSON schemas as plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = Mapping[str, Any]

ANYTHING: Schema = {}
NOTHING: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
#: Strings in requests must not contain NUL.
REQUESTED: Schema = {"type": "string", "pattern": r"^[^\u0000]*$"}
FLAG: Schema = {"type": "boolean"}
#: Heat accepts flags as strings, too.
WORD_FLAG: Schema = {"type": ["boolean", "string"], "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
#: Counters without an upper limit of their own.
COUNTED: Schema = {**WHOLE, "maximum": 2**63 - 1}
NUMBER: Schema = {"type": "number"}
#: Any keys, any values.
MAP: Schema = {"type": "object"}
ID: Schema = {"type": "string", "minLength": 1}
TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}
#: Keystone's time format, with microseconds.
FINE_TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}


def ref(name: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(needed: Mapping[str, Schema], **may: Schema) -> Schema:
    """Return the schema of an object with exactly these members, for responses."""
    return {
        "type": "object",
        "properties": {**needed, **may},
        "required": list(needed),
        "additionalProperties": False,
    }


def request(needed: Mapping[str, Schema] | None = None, **may: Schema) -> dict[str, Any]:
    """
    Return the schema of an object with at least these members, for requests, in which Stoker ignores unknown members.
    """
    needed = needed or {}
    said: dict[str, Any] = {"type": "object", "properties": {**needed, **may}}
    return {**said, "required": list(needed)} if needed else said


def without_extras(schema: Schema) -> Schema:
    """Return the schema without additional members."""
    return {**schema, "additionalProperties": False}


def list_of(each: Schema) -> Schema:
    return {"type": "array", "items": each}


def by_name(each: Schema) -> Schema:
    """Return the schema of an object whose keys are names."""
    return {"type": "object", "additionalProperties": each}


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def maybe(schema: Schema) -> Schema:
    """Return the schema that also allows null."""
    if "$ref" in schema:
        return {"anyOf": [schema, NOTHING]}
    kinds = schema["type"]
    said = {**schema, "type": [kinds, "null"] if isinstance(kinds, str) else [*kinds, "null"]}
    return {**said, "enum": [*said["enum"], None]} if "enum" in said else said


def text(longest: int, least: int = 0) -> Schema:
    return {**REQUESTED, "minLength": least, "maxLength": longest}


def under(name: str, schema: Schema) -> Schema:
    """Return the schema of a response that contains one object under its noun."""
    return record({name: schema})


def with_description(schema: Schema, words: str) -> Schema:
    """Return the schema with a description."""
    return {**schema, "description": words}


def merge(parts: Iterable[Mapping[str, Schema]]) -> dict[str, Schema]:
    """Merge dictionaries of schemas. Raises ValueError if a name occurs twice."""
    found: dict[str, Schema] = {}
    for part in parts:
        if twice := found.keys() & part.keys():
            raise ValueError(f"two schemas called {', '.join(sorted(twice))}")
        found |= part
    return found
