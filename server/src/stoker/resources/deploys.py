"""What checks and plans have to know of configs, deployments and servers before they exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.resources.base import Properties


class ProvidesConfig:
    """A resource type whose resources are configs that deployments run."""

    def declare(self, properties: Properties) -> Mapping[str, Any]:
        """Return the new config: ``group``, ``config``, ``options``, ``inputs``, ``outputs``. Parts may be UNKNOWN."""
        raise NotImplementedError


class RunsConfig:
    """A resource type whose resources run a config, the property ``config``, on servers."""

    #: Whether each server has a deployment of its own in a nested stack.
    is_group = False

    def servers(self, properties: Properties) -> Mapping[str, Any]:
        """Return the servers that the properties name, each under the path of its property. Parts may be UNKNOWN."""
        return {"server": properties.get("server")}


class ProvidesServer:
    """A resource type whose resources are servers, with the policy of ``policy.rules.NAME`` if the type has one."""

    #: Whether a resource may come to represent the enrolled server of its name.
    may_be_enrolled = False
