"""Finds and replaces the names of files in templates and environments, with one traversal for both."""

from collections.abc import Callable
from typing import Any

from stoker_client.templates import locations

# Returns the replacement for a file's name, given the name and the URL of the document that contains it.
Visit = Callable[[str, str], str]

NESTED = (".yaml", ".template")
#: The type whose property names a template, and the keys of a resource in HOT and in CloudFormation's syntax.
_NESTED_STACK, _TEMPLATE_URL = "AWS::CloudFormation::Stack", "TemplateURL"
_SYNTAXES = (("type", "properties"), ("Type", "Properties"))
NOT_FILES = ("base_url", "hooks", "restricted_actions")


def in_template(data: Any, base: str, visit: Visit) -> Any:
    """
    Return ``data`` with each name of a file replaced by ``visit``'s result.

    ``get_file``, types such as ``x.yaml``, and the ``TemplateURL`` of a nested stack name files.
    """
    return _Walk(base, visit).copy(data)


class _Walk:
    """A copying traversal that visits each node once, even if YAML aliases repeat it."""

    def __init__(self, base: str, visit: Visit) -> None:
        self._base = base
        self._visit = visit
        self._done: dict[int, Any] = {}

    def copy(self, node: Any) -> Any:
        if not isinstance(node, dict | list):
            return node
        if id(node) not in self._done:
            # Registered before it is filled, because an alias may refer to an enclosing node.
            if isinstance(node, dict):
                mapping: dict[Any, Any] = {}
                self._done[id(node)] = mapping
                mapping.update({key: self._value(key, value) for key, value in node.items()})
                self._visit_nested_url(mapping)
            else:
                items: list[Any] = []
                self._done[id(node)] = items
                items.extend(self.copy(value) for value in node)
        return self._done[id(node)]

    def _value(self, key: Any, value: Any) -> Any:
        return self._visit(value, self._base) if _names_a_file(key, value) else self.copy(value)

    def _visit_nested_url(self, resource: dict[Any, Any]) -> None:
        """Replace the name of the template in the properties of an AWS::CloudFormation::Stack."""
        for type_key, properties_key in _SYNTAXES:
            properties = resource.get(properties_key)
            if resource.get(type_key) == _NESTED_STACK and isinstance(properties, dict):
                url = properties.get(_TEMPLATE_URL)
                if isinstance(url, str):
                    resource[properties_key] = {**properties, _TEMPLATE_URL: self._visit(url, self._base)}


def _names_a_file(key: Any, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return key == "get_file" or (key == "type" and (value.endswith(NESTED) or locations.is_catalog(value)))


def in_environment(data: Any, base: str, visit: Visit) -> Any:
    """Return ``data`` with each template name in ``resource_registry`` replaced by ``visit``'s result."""
    registry = data.get("resource_registry") if isinstance(data, dict) else None
    if not isinstance(registry, dict):
        return data
    return {**data, "resource_registry": _registry(registry, base, visit)}


def _registry(registry: dict[Any, Any], base: str, visit: Visit) -> dict[Any, Any]:
    inside = _base(registry, base)
    visited = {key: visit(value, inside) if _maps_to_a_file(key, value) else value for key, value in registry.items()}
    resources = registry.get("resources")
    if isinstance(resources, dict):
        visited["resources"] = {
            name: _registry(entry, inside, visit) if isinstance(entry, dict) else entry
            for name, entry in resources.items()
        }
    return visited


def _base(registry: dict[Any, Any], base: str) -> str:
    own = registry.get("base_url")
    return locations.folder(own, base) if isinstance(own, str) else base


def _maps_to_a_file(key: Any, value: Any) -> bool:
    """Whether a registry entry names a file: a type such as ``X::Y::Z`` is built in, all else is a template."""
    return key not in NOT_FILES and isinstance(value, str) and "::" not in value
