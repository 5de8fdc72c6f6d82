"""
Catalog entries: typed, versioned configs, as documents in YAML.

A document has the key ``stoker_catalog_version``. As the content of an ``OS::Heat::SoftwareConfig``, an entry brings
its group, inputs, outputs and options along (``merge``). As a resource type, it is a template (``to_template``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from stoker import json_values
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
_TEMPLATE_VERSION = "2021-04-16"
#: The parameter for the server. No input may have this name.
_SERVER = "server"
_INPUT_NAME = re.compile(f"(?!{_SERVER}$|deploy_)[a-z][a-z0-9_]{{0,62}}")

_Text = Annotated[str, Meta(min_length=1)]
_Action = Literal["CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME"]


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input of a config, which is a parameter of its template."""

    name: str
    description: _Text
    type: Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"] = "String"
    default: Any = UNSET
    secret: bool | UnsetType = UNSET
    constraints: list[dict[str, Any]] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not _INPUT_NAME.fullmatch(self.name):
            raise ValueError(
                f"the name {self.name!r:.80} must have lower-case letters, digits and underscores, and be neither"
                f" {_SERVER!r} nor begin with 'deploy_'"
            )


class Output(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An output of a config."""

    name: _Text
    description: _Text


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checked catalog entry."""

    format: Literal[1] = msgspec.field(name=VERSION_KEY)
    name: str
    version: Annotated[int, Meta(ge=1, le=999_999)]
    description: _Text
    group: _Text
    config: _Text
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    options: dict[str, Any] = {}
    #: Name of the library whose source precedes the config, such as ``steps/1``; None: the config needs none.
    library: _Text | None = None
    #: The actions of the stack that run the config. With DELETE, the config removes what it made.
    actions: Annotated[tuple[_Action, ...], Meta(min_length=1)] = ("CREATE", "UPDATE")
    #: Values of properties for the documentation and the contract test.
    example: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError("the name must have lower-case letters, digits and hyphens, at most 63")
        for kind, names in (("inputs", [i.name for i in self.inputs]), ("outputs", [o.name for o in self.outputs])):
            if len(set(names)) != len(names):
                raise ValueError(f"two {kind} have the same name")

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
        inputs = json.dumps([_schema(declared) for declared in self.inputs])
        return f"{library}\n\nSCHEMA = {inputs!r}\n\n\n{self.config}"

    def config_inputs(self) -> list[dict[str, Any]]:
        """Return the inputs as a config declares them: without constraints."""
        return [msgspec.to_builtins(msgspec.structs.replace(declared, constraints=UNSET)) for declared in self.inputs]

    def config_outputs(self) -> list[dict[str, Any]]:
        """Return the outputs as a config declares them."""
        return [msgspec.to_builtins(declared) for declared in self.outputs]


def is_document(data: Mapping[str, Any]) -> bool:
    """Return whether decoded data is a catalog entry."""
    return VERSION_KEY in data


def is_entry_text(text: Any) -> bool:
    """Return whether a text begins as a catalog entry does."""
    return isinstance(text, str) and text.startswith(VERSION_KEY)


def parse(data: Mapping[str, Any]) -> Entry:
    """Check a decoded document. Raises Invalid with the place."""
    present = {key: value for key, value in data.items() if value is not None}
    try:
        entry = json_values.convert(present, Entry, "the document")
    except Invalid as error:
        raise Invalid(f"catalog entry {data.get('name')!r:.80}: {error.message}") from None
    entry.source()
    return entry


def to_template(data: Mapping[str, Any]) -> dict[str, Any]:
    """
    Translate a document to a HOT template with the config and its deployment.

    The parameters are ``server`` and the inputs, the outputs are those of the config. Raises Invalid.
    """
    entry = parse(data)
    names = [declared.name for declared in entry.inputs]
    config = {"group": entry.group, "config": entry.source(), "options": entry.options}
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
            **{declared.name: _parameter(declared) for declared in entry.inputs},
        },
        "resources": {
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {**config, "inputs": entry.config_inputs(), "outputs": entry.config_outputs()},
            },
            "deployment": {"type": "OS::Heat::SoftwareDeployment", "properties": deployment},
        },
        "outputs": {
            output.name: {"description": output.description, "value": {"get_attr": ["deployment", output.name]}}
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
        "outputs": _override(entry.config_outputs(), properties.get("outputs"), f"outputs: {entry.reference}"),
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


def _parameter(declared: Input) -> dict[str, Any]:
    """Return the parameter for an input."""
    parameter: dict[str, Any] = {"type": INPUT_TYPES[declared.type], "description": declared.description}
    if declared.default is not UNSET:
        parameter["default"] = declared.default
    constraints = declared.constraints or []
    if declared.type == "CommaDelimitedList":  # HOT has no patterns for items; the library checks them on the server
        constraints = [constraint for constraint in constraints if "allowed_pattern" not in constraint]
    if constraints:
        parameter["constraints"] = constraints
    return {**parameter, "hidden": True} if declared.secret is True else parameter


def _schema(declared: Input) -> dict[str, Any]:
    """Return what a library needs to check an input on the server."""
    members = msgspec.to_builtins(declared)
    return {key: members[key] for key in ("name", "type", "default", "constraints") if key in members}
