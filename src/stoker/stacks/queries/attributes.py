"""All attributes of a resource, for ``get_attr`` without a name and for the API's detail view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.model.errors import StokerError
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import NoSuchAttribute
from stoker.resources.deployment_base import ATTRIBUTES as DEPLOYMENT_ATTRIBUTES
from stoker.stacks.engine.session import StackSession
from stoker.store import deployments


def all_attributes(session: StackSession, resource: Resource) -> dict[str, Any]:
    """Return all attributes by name. An unavailable attribute is null."""
    if resource.action in (Action.INIT, Action.DELETE):
        return {}
    kind = session.type_of(resource)
    names: Iterable[str] = kind.attributes if kind.attributes is not None else _reported(session, resource)
    shown = {}
    for name in names:
        try:
            if kind.attribute_at is not None:
                shown[name] = kind.attribute_at(session.context, resource, name, ())
            else:
                shown[name] = kind.attribute(session.context, resource, name)
        except (NoSuchAttribute, StokerError):
            shown[name] = None
    return shown


def _reported(session: StackSession, resource: Resource) -> Iterable[str]:
    """Return the names of a deployment's attributes, which depend on the values of its run."""
    deployment = deployments.find(session.tx, resource.physical_id) if resource.physical_id else None
    return {**DEPLOYMENT_ATTRIBUTES, **deployment.output_values} if deployment else ()
