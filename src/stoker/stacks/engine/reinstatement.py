"""
Replaced and removed resources, to which a rollback returns.

A resource that an update replaces or removes stays until the clean-up, at the end of the update. If the update fails
before, its rollback makes the resource current again, as Heat does, and the replacement is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.hot import Definition
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources.base import ResourceType
from stoker.stacks.engine.changes import ResourceChange, decide
from stoker.stacks.engine.session import StackSession


def retire(session: StackSession, kind: ResourceType, resource: Resource) -> Mapping[str, Any]:
    """Free the name of a resource for its replacement. Return entries for the replacement's data."""
    if resource.type != kind.name and resource.type not in kind.aliases:
        session.resources.retire(resource)
        return {}
    kept, passed = kind.prepare_replacement(session.context, resource)
    session.resources.retire(replace(resource, data=kept))
    return passed


def reinstate(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    resource: Resource | None,
    properties: Mapping[str, Any],
) -> tuple[Resource | None, bool]:
    """
    Return the resource with which a rollback continues, and whether the type has to restore this resource.

    This is the predecessor of ``resource``, if it is intact and can have the properties without a replacement.
    """
    replacement = None if resource is None or resource.action is Action.INIT else resource
    if replacement is not None and decide(replacement, kind, definition, properties) is not ResourceChange.REPLACE:
        return resource, False
    for predecessor in session.resources.find_retired(definition.name):
        if not _is_intact(predecessor) or decide(predecessor, kind, definition, properties) is ResourceChange.REPLACE:
            continue
        if replacement is None:
            if resource is not None:
                session.resources.retire(resource)
            return session.resources.reinstate(predecessor), False
        if kind.may_return(predecessor, replacement):
            passed = retire(session, kind, replacement)
            restored = replace(predecessor, data={**predecessor.data, **passed})
            return session.resources.reinstate(restored), kind.restore is not None
    return resource, False


def _is_intact(resource: Resource) -> bool:
    return resource.status is Status.COMPLETE and resource.action not in (Action.INIT, Action.DELETE)
