"""The APIs of template validation, template functions and resource types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stoker_client.collection import part, segment

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Templates:
    """Calls that need no stack."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def validate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Validate a template. Return its description and parameters."""
        return self._wire.send("POST", "/validate", body)

    def versions(self) -> list[dict[str, Any]]:
        """Return the template versions."""
        return part(self._wire.get("/template_versions"), "template_versions")

    def functions(self, version: str) -> list[dict[str, Any]]:
        """Return the functions of a template version."""
        answer = self._wire.get(f"/template_versions/{segment(version)}/functions")
        return part(answer, "template_functions")

    def types(self) -> list[dict[str, Any]]:
        """Return all resource types with their descriptions."""
        answer = self._wire.get("/resource_types", {"with_description": "true"})
        return part(answer, "resource_types")

    def type(self, name: str) -> dict[str, Any]:
        """Return the schema of a resource type: properties and attributes."""
        return self._wire.get(f"/resource_types/{segment(name)}")

    def type_template(self, name: str) -> dict[str, Any]:
        """Return a template with one resource of the type."""
        query = {"template_type": "hot"}
        return self._wire.get(f"/resource_types/{segment(name)}/template", query)
