"""Turns a cloud's servers into enrolled servers, and the scripts of their user data into deployments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker_migrate.template.parts import Change, Interface, NewParameter, Part, TemplateContext
from stoker_migrate.template.references import References
from stoker_migrate.template.source_text import SourceText, mapping_at
from stoker_migrate.template.types import CONFIGS, DEPLOYMENTS, SERVER, SERVER_PROPERTIES

_CFN_INIT = "AWS::CloudFormation::Init"


class ServerMigration:
    """The migration of the servers of one template."""

    def __init__(
        self, source: SourceText, context: TemplateContext, references: References, interface: Interface
    ) -> None:
        self._source = source
        self._context = context
        self._references = references
        self._interface = interface
        self._resources: Mapping[str, Any] = source.data["resources"]
        self._boot = BootScriptFinder(self._resources, context.read)
        #: The deployments of boot scripts, by the server's resource.
        self.boots: dict[str, list[str]] = {}

    def migrate(self, part: Part) -> None:
        """Replace the type and the properties of one server, or of the members of a group."""
        self._source.replace((*part.path, "type"), SERVER)
        unsupported = [name for name in part.properties if name not in SERVER_PROPERTIES]
        for name in unsupported:
            self._source.remove((*part.path, "properties", name))
        named = self._name(part)
        dropped = [name for name in unsupported if name not in ("user_data", "user_data_format")]
        text = f"{part.definition['type']} becomes {SERVER}: {named}"
        self._context.note(part.path, Change.REPLACED, text)
        if dropped:
            self._context.note(part.path, Change.DROPPED, f"properties {', '.join(dropped)}")
        if _CFN_INIT in (part.definition.get("metadata") or {}):
            text = f"the metadata has {_CFN_INIT}: write a config with the group cfn-init, and a deployment"
            self._context.note(part.path, Change.WARNING, text)
        self._move_user_data(part)

    def _name(self, part: Part) -> str:
        """Ensure that the server has a name. Returns instructions for the user."""
        if (name := part.properties.get("name")) is not None:
            described = f"named {name}" if isinstance(name, str) else "with the name in its property name"
            return f"enroll {'servers' if part.is_group else 'a server'} {described}"
        what = f"Beginning of the names of the enrolled servers of {part.name}; a dash and the index follow."
        one = f"Name of the enrolled server that replaces {part.name}."
        description = what if part.is_group else one
        new = NewParameter(f"{part.name}_server", description, is_server_name=True)
        parameter = self._interface.add(new, self._context)
        value = server_name(parameter, part.index)
        if part.properties:
            self._source.add((*part.path, "properties"), "name", value)
        else:
            self._source.add(part.path, "properties", {"name": value}, after="type")
        return f"the parameter {parameter} has the {'beginning of the names' if part.is_group else 'name'}"

    def _move_user_data(self, part: Part) -> None:
        user_data = part.properties.get("user_data")
        path = (*part.path, "properties", "user_data")
        parts = list(self._boot.find(user_data))
        for reason in filter(None, (script.refusal for script in parts)):
            self._context.note(path, Change.WARNING, f"dropped: {reason}; write a config and a deployment in its place")
        scripts = [script for script in parts if not script.refusal]
        if part.index is not None and part.index in str(user_data) and scripts:
            self._context.note(path, Change.WARNING, "dropped: it differs by member; write a config with an input")
            return
        for number, script in enumerate(scripts, 1):
            suffix = f"_{number}" if len(scripts) > 1 else ""
            name = self._free_name(f"{part.name}_boot{suffix}")
            self._add_boot(part, name, script)
            self.boots.setdefault(part.name, []).append(name)
            self._context.note(path, Change.MAPPED, f"the deployment {name} runs the script once")

    def _add_boot(self, part: Part, name: str, script: BootScript) -> None:
        """Add a deployment, and a config unless the template has it."""
        condition = {key: value for key, value in part.definition.items() if key == "condition"}
        config = script.config
        after = part.name
        if config is None:
            config = self._free_name(f"{name}_config")
            properties = {"group": "script", "config": self._references.rewrite(script.text)}
            new = {"type": "OS::Heat::SoftwareConfig", **condition, "properties": properties}
            self._source.add(("resources",), config, new, after=after)
        elif needs_group(self._resources[config]):
            self._set_group(config)
        target = (
            {"servers": {"get_attr": [part.name, "refs_map"]}}
            if part.is_group
            else {"server": {"get_resource": part.name}}
        )
        before = {"depends_on": self.boots[part.name][-1]} if self.boots.get(part.name) else {}
        kind = "OS::Heat::SoftwareDeploymentGroup" if part.is_group else "OS::Heat::SoftwareDeployment"
        properties = {"config": {"get_resource": config}, **target, "actions": ["CREATE"]}
        self._source.add(
            ("resources",), name, {"type": kind, **condition, **before, "properties": properties}, after=after
        )

    def _set_group(self, config: str) -> None:
        path = ("resources", config, "properties")
        if "group" in self._resources[config]["properties"]:
            self._source.replace((*path, "group"), "script")
        else:
            self._source.add(path, "group", "script")
        self._context.note(path, Change.MAPPED, "group script, so that a deployment can run the config")

    def _free_name(self, name: str) -> str:
        taken = {*self._resources, *(boot for boots in self.boots.values() for boot in boots)}
        return next(free for free in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if free not in taken)

    def boots_before(self, definition: Mapping[str, Any]) -> list[str]:
        """Return the deployments of boot scripts that must end before the deployment ``definition`` starts."""
        properties = mapping_at(definition, "properties")
        if definition.get("type") not in DEPLOYMENTS:
            return []
        targets = str([properties.get("server"), properties.get("servers")])
        return [boots[-1] for server, boots in self.boots.items() if f"'{server}'" in targets]


def server_name(parameter: str, index: str | None) -> dict[str, Any]:
    """Return the expression for a server's name; ``index`` stands for the member's index in a group."""
    value = {"get_param": parameter}
    return value if index is None else {"list_join": ["-", [value, index]]}


#: Groups of configs that only a boot runs.
_UNGROUPED = (None, "Heat::Ungrouped", "ungrouped")


@dataclass(frozen=True)
class BootScript:
    """A script of user data: its text as an expression, or the config that has the text."""

    text: Any = None
    config: str | None = None
    #: Why no deployment can run this part of the user data.
    refusal: str = ""


class BootScriptFinder:
    """Searches the user data of one template's servers."""

    def __init__(self, resources: Mapping[str, Any], read: Callable[[str], str | None]) -> None:
        """``read`` returns the content of a file that the template names, or None if it cannot be read."""
        self._resources = resources
        self._read = read

    def find(self, user_data: Any) -> Iterator[BootScript]:
        """Yield the scripts in ``user_data``, the value of the property."""
        name = _resource(user_data)
        if self._is_script(user_data):
            yield BootScript(text=user_data)
        elif name in self._resources:
            yield from self._find_in_resource(str(name))
        elif user_data not in (None, ""):
            yield BootScript(refusal="it is no script that begins with #!")

    def _find_in_resource(self, name: str) -> Iterator[BootScript]:
        definition = self._resources[name]
        properties = definition.get("properties") or {}
        if definition.get("type") in CONFIGS and self._is_script(properties.get("config")):
            yield BootScript(config=name)
        elif definition.get("type") == "OS::Heat::MultipartMime":
            for part in properties.get("parts") or ():
                if isinstance(part, dict):
                    yield from self.find(part.get("config"))
        else:
            yield BootScript(refusal=f"{name} ({definition.get('type')}) is no script that begins with #!")

    def _is_script(self, value: Any) -> bool:
        """Return whether the text begins with ``#!``; of a call, its template or its file."""
        if isinstance(value, str):
            return value.startswith("#!")
        if not isinstance(value, dict) or len(value) != 1:
            return False
        function, argument = next(iter(value.items()))
        if function == "get_file" and isinstance(argument, str):
            return (self._read(argument) or "").startswith("#!")
        if function.startswith("str_replace") and isinstance(argument, dict):
            return self._is_script(argument.get("template"))
        if function == "list_join" and isinstance(argument, list) and len(argument) > 1:
            return isinstance(argument[1], list) and bool(argument[1]) and self._is_script(argument[1][0])
        return False


def needs_group(definition: Mapping[str, Any]) -> bool:
    """Return whether a config needs a group before a deployment can run it."""
    return (definition.get("properties") or {}).get("group") in _UNGROUPED


def _resource(value: Any) -> str | None:
    if not isinstance(value, dict) or len(value) != 1:
        return None
    name = value.get("get_resource")
    path = value.get("get_attr")
    if isinstance(path, list) and len(path) == 2 and path[1] == "config":
        name = path[0]
    return name if isinstance(name, str) else None
