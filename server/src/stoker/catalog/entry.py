"""
Catalog entries: typed, versioned configs, as documents in YAML.

A document has the key ``stoker_catalog_version``. As the content of an ``OS::Heat::SoftwareConfig``, an entry brings
its group, inputs, outputs and options along (``merge``). As a resource type, it is a template (``to_template``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.catalog import shipped
from stoker.model.config import INPUT_TYPES, UNGROUPED
from stoker.model.errors import Invalid

#: The key that distinguishes an entry from a template, and its only value so far.
VERSION_KEY, FORMAT = "stoker_catalog_version", 1
#: Prefix of the names with which templates refer to entries.
SCHEME = "catalog://"
#: A reference to an entry in a template. Its groups are the name and the version.
REFERENCE = re.compile(r"catalog://([a-z][a-z0-9-]{0,62})/([1-9][0-9]{0,5})(?![0-9A-Za-z/-])")
_NAME = re.compile("[a-z][a-z0-9-]{0,62}")
_INPUT_NAME = re.compile("[a-z][a-z0-9_]{0,62}")
_TEXTS = ("name", "description", "group", "config")
_KEYS = frozenset((VERSION_KEY, *_TEXTS, "version", "library", "inputs", "outputs", "options", "actions", "example"))
_INPUT_KEYS = frozenset(("name", "type", "description", "default", "secret", "constraints"))
_OUTPUT_KEYS = frozenset(("name", "description"))
_TEMPLATE_VERSION = "2021-04-16"
#: The parameter for the server. No input may have this name.
_SERVER = "server"
_ACTIONS = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A checked catalog entry. ``inputs`` and ``outputs`` are as in the document."""

    name: str
    version: int
    description: str
    group: str
    config: str
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Name of the library whose source precedes the config, such as ``steps/1``; None: the config needs none.
    library: str | None = None
    #: The actions of the stack that run the config. With DELETE, the config removes what it made.
    actions: tuple[str, ...] = _ACTIONS
    #: Values of properties for the documentation and the contract test.
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The name of the entry in templates, such as ``catalog://nginx/1``."""
        return f"{SCHEME}{self.name}/{self.version}"

    def source(self) -> str:
        """Return the config's text, after the source of its library. Raises Invalid for an unknown library."""
        if self.library is None:
            return self.config
        library = shipped.find_library(self.library)
        if library is None:
            libraries = ", ".join(shipped.list_libraries())
            raise Invalid(f"{self.reference}: there is no library {self.library!r}; there are {libraries}")
        inputs = json.dumps([_schema(entry) for entry in self.inputs])
        return f"{library}\n\nSCHEMA = {inputs!r}\n\n\n{self.config}"

    def config_inputs(self) -> list[dict[str, Any]]:
        """Return the inputs as a config declares them: without constraints."""
        return [{key: value for key, value in entry.items() if key != "constraints"} for entry in self.inputs]


def is_document(data: Mapping[str, Any]) -> bool:
    """Return whether decoded data is a catalog entry."""
    return VERSION_KEY in data


def is_entry_text(text: Any) -> bool:
    """Return whether a text begins as a catalog entry does."""
    return isinstance(text, str) and text.startswith(VERSION_KEY)


def parse(data: Mapping[str, Any]) -> Entry:
    """Check a decoded document. Raises Invalid with the place."""
    what = f"catalog entry {data.get('name')!r:.80}"
    if data.get(VERSION_KEY) != FORMAT:
        raise Invalid(f"{what}: {VERSION_KEY} must be {FORMAT}")
    _check_keys(data, _KEYS, what)
    texts = {key: _text(data.get(key), f"{what}: {key}") for key in _TEXTS}
    version = data.get("version")
    if not _NAME.fullmatch(texts["name"]):
        raise Invalid(f"{what}: a name has lower-case letters, digits and hyphens, at most 63")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < 10**6:
        raise Invalid(f"{what}: version must be a number from 1 to 999999")
    entry = Entry(
        **texts,
        version=version,
        inputs=tuple(_inputs(data.get("inputs"), what)),
        outputs=tuple(_outputs(data.get("outputs"), what)),
        options=_map(data.get("options"), f"{what}: options"),
        library=None if data.get("library") is None else _text(data["library"], f"{what}: library"),
        actions=_actions(data.get("actions"), what),
        example=_map(data.get("example"), f"{what}: example"),
    )
    entry.source()
    return entry


def to_template(data: Mapping[str, Any]) -> dict[str, Any]:
    """
    Translate a document to a HOT template with the config and its deployment.

    The parameters are ``server`` and the inputs, the outputs are those of the config. Raises Invalid.
    """
    entry = parse(data)
    names = [declared["name"] for declared in entry.inputs]
    config = {"group": entry.group, "config": entry.source(), "options": dict(entry.options)}
    deployment = {
        "config": {"get_resource": "config"},
        "server": {"get_param": _SERVER},
        "name": f"{entry.name}-{entry.version}",
        "actions": list(entry.actions),
        "input_values": {name: {"get_param": name} for name in names},
    }
    return {
        "heat_template_version": _TEMPLATE_VERSION,
        "description": entry.description,
        "parameters": {
            _SERVER: {"type": "string", "description": "The server, by its id or as a resource"},
            **{declared["name"]: _parameter(declared) for declared in entry.inputs},
        },
        "resources": {
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {**config, "inputs": entry.config_inputs(), "outputs": [dict(o) for o in entry.outputs]},
            },
            "deployment": {"type": "OS::Heat::SoftwareDeployment", "properties": deployment},
        },
        "outputs": {
            output["name"]: {
                "description": output["description"],
                "value": {"get_attr": ["deployment", output["name"]]},
            }
            for output in entry.outputs
        },
    }


def merge(entry: Entry, properties: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the properties of a config whose content is the entry. Values of the author's own take precedence.

    Raises Invalid for another group, and for an input or output that the entry does not have.
    """
    group = properties.get("group")
    if group not in (None, UNGROUPED, entry.group):
        raise Invalid(f"group: {entry.reference} is a config of the group {entry.group}, not {group}")
    return {
        **properties,
        "group": entry.group,
        "config": entry.source(),
        "options": {**entry.options, **(properties.get("options") or {})},
        "inputs": _override(entry.config_inputs(), properties.get("inputs"), f"inputs: {entry.reference}"),
        "outputs": _override(entry.outputs, properties.get("outputs"), f"outputs: {entry.reference}"),
    }


def _override(declared: Iterable[Mapping[str, Any]], own: Any, what: str) -> list[dict[str, Any]]:
    """Return the declarations, each with the members that the author's own declaration sets."""
    entries = {item["name"]: dict(item) for item in declared}
    for item in own or ():
        if item["name"] not in entries:
            raise Invalid(f"{what} has no {item['name']!r}; there are {', '.join(entries) or 'none'}")
        changes = {key: value for key, value in item.items() if value not in (None, "", False, "String")}
        entries[item["name"]] |= changes
    return list(entries.values())


def _parameter(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter for an input."""
    parameter = {"type": INPUT_TYPES[declared["type"]], "description": declared["description"]}
    if "default" in declared:
        parameter["default"] = declared["default"]
    constraints = declared.get("constraints") or ()
    if declared["type"] == "CommaDelimitedList":  # HOT has no patterns for items; the library checks them on the server
        constraints = [constraint for constraint in constraints if "allowed_pattern" not in constraint]
    if constraints:
        parameter["constraints"] = list(constraints)
    return {**parameter, "hidden": True} if declared.get("secret") else parameter


def _schema(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a library needs to check an input on the server."""
    return {key: declared[key] for key in ("name", "type", "default", "constraints") if key in declared}


def _inputs(value: Any, what: str) -> Iterable[dict[str, Any]]:
    for declared in _entries(value, f"{what}: inputs"):
        name = declared.get("name")
        place = f"{what}: input {name!r:.80}"
        _check_keys(declared, _INPUT_KEYS, place)
        if (
            not isinstance(name, str)
            or not _INPUT_NAME.fullmatch(name)
            or name == _SERVER
            or name.startswith("deploy_")
        ):
            raise Invalid(f"{place}: a name has lower-case letters, digits and underscores, and is not {_SERVER!r}")
        _text(declared.get("description"), f"{place}: description")
        kind = declared.get("type", "String")
        if kind not in INPUT_TYPES:
            raise Invalid(f"{place}: type must be one of {', '.join(INPUT_TYPES)}")
        yield {**declared, "type": kind}


def _outputs(value: Any, what: str) -> Iterable[dict[str, Any]]:
    for declared in _entries(value, f"{what}: outputs"):
        place = f"{what}: output {declared.get('name')!r:.80}"
        _check_keys(declared, _OUTPUT_KEYS, place)
        yield {key: _text(declared.get(key), f"{place}: {key}") for key in ("name", "description")}


def _entries(value: Any, place: str) -> list[Mapping[str, Any]]:
    entries = [] if value is None else value
    if not isinstance(entries, list) or not all(isinstance(item, Mapping) for item in entries):
        raise Invalid(f"{place} must be a list of maps")
    names = [str(item.get("name")) for item in entries]
    if len(set(names)) != len(names):
        raise Invalid(f"{place} has two entries with the same name")
    return entries


def _actions(value: Any, what: str) -> tuple[str, ...]:
    actions = list(_ACTIONS) if value is None else value
    allowed = (*_ACTIONS, "DELETE", "SUSPEND", "RESUME")
    if not isinstance(actions, list) or not actions or not all(action in allowed for action in actions):
        raise Invalid(f"{what}: actions must be a list of {', '.join(allowed)}")
    return tuple(actions)


def _map(value: Any, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"{place} must be a map")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{place} must be a text")
    return value


def _check_keys(data: Mapping[str, Any], keys: frozenset[str], place: str) -> None:
    for key in data:
        if key not in keys:
            raise Invalid(f"{place}: unknown key {key!r}; known are {', '.join(sorted(keys))}")
