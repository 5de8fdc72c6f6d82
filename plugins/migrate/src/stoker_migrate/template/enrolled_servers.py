"""Turns a cloud's servers into enrolled servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_migrate.template.boot_scripts import BootScript, BootScriptFinder, needs_group
from stoker_migrate.template.parameters import AddedParameters
from stoker_migrate.template.parts import Part, TemplateContext
from stoker_migrate.template.references import References
from stoker_migrate.template.report import Change, NewParameter
from stoker_migrate.template.source_text import SourceText
from stoker_migrate.template.types import DEPLOYMENTS, SERVER, SERVER_PROPERTIES

_CFN_INIT = "AWS::CloudFormation::Init"


class ServerMigration:
    """The migration of the servers of one template."""

    def __init__(
        self, source: SourceText, context: TemplateContext, references: References, parameters: AddedParameters
    ) -> None:
        """``parameters`` collects the new parameters of the template."""
        self._source = source
        self._context = context
        self._references = references
        self._parameters = parameters
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
        parameter = self._parameters.add(
            NewParameter(f"{part.name}_server", description, is_server_name=True), self._context
        )
        value = server_name(parameter, part.index)
        if part.properties:
            self._source.add((*part.path, "properties"), "name", value)
        else:
            self._source.add(part.path, "properties", {"name": value}, after="type")
        return f"the parameter {parameter} has the {'beginning of the names' if part.is_group else 'name'}"

    def _move_user_data(self, part: Part) -> None:
        user_data = part.properties.get("user_data")
        path = (*part.path, "properties", "user_data")
        boot = self._boot.find(user_data)
        for reason in boot.refused:
            self._context.note(path, Change.WARNING, f"dropped: {reason}; write a config and a deployment in its place")
        if part.index is not None and part.index in str(user_data) and boot.scripts:
            self._context.note(path, Change.WARNING, "dropped: it differs by member; write a config with an input")
            return
        for number, script in enumerate(boot.scripts, 1):
            suffix = f"_{number}" if len(boot.scripts) > 1 else ""
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
        properties = definition.get("properties")
        if definition.get("type") not in DEPLOYMENTS or not isinstance(properties, dict):
            return []
        targets = str([properties.get("server"), properties.get("servers")])
        return [boots[-1] for server, boots in self.boots.items() if f"'{server}'" in targets]


def server_name(parameter: str, index: str | None) -> dict[str, Any]:
    """Return the expression for a server's name; ``index`` stands for the member's index in a group."""
    value = {"get_param": parameter}
    return value if index is None else {"list_join": ["-", [value, index]]}
