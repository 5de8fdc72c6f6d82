"""All attributes of a resource at once: what ``get_attr`` without a name and the API's detail show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.model.errors import StokerError
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import NoSuchAttribute
from stoker.resources.deploying import ATTRIBUTES as DEPLOYMENT_ATTRIBUTES
from stoker.stacks.transition import Transition
from stoker.store import deployments


def all_attributes(transition: Transition, resource: Resource) -> dict[str, Any]:
    """Those that cannot be had are null."""
    if resource.action in (Action.INIT, Action.DELETE):
        return {}
    kind = transition.type_of(resource)
    names: Iterable[str] = kind.attributes if kind.attributes is not None else _reported(transition, resource)
    shown = {}
    for name in names:
        try:
            if kind.attribute_at is not None:
                shown[name] = kind.attribute_at(transition.context, resource, name, ())
            else:
                shown[name] = kind.attribute(transition.context, resource, name)
        except (NoSuchAttribute, StokerError):
            shown[name] = None
    return shown


def _reported(transition: Transition, resource: Resource) -> Iterable[str]:
    """A deployment's attributes are what its run brought back."""
    deployment = deployments.find(transition.tx, resource.physical_id) if resource.physical_id else None
    return {**DEPLOYMENT_ATTRIBUTES, **deployment.output_values} if deployment else ()
