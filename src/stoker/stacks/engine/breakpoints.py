"""
Breakpoints: the environment pauses an operation before or after an action on a resource.

A paused resource has the name of the hook, and its step stays in progress. A signal that clears the hook continues
both.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from stoker.hot import Definition
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.stacks.engine.session import StackSession

#: Actions of a stack during which each hook applies. As in Heat, resources that an update creates or deletes do not
#: pause.
_DURING = {Action.CREATE: (Action.CREATE,), Action.UPDATE: (Action.UPDATE,), Action.DELETE: (Action.DELETE,)}


def pauses(session: StackSession, resource: Resource, when: str, action: Action | None = None) -> bool:
    """
    Pause the resource if it has the hook. Return whether it pauses.

    ``when`` is ``pre`` or ``post``; ``action`` is the resource's present action by default.
    """
    done = action or resource.action
    hook = f"{when}-{done.lower()}"
    if hook not in resource.definition.get("hooks", ()) or session.stack.action not in _DURING.get(done, ()):
        return False
    _stop(session, resource, hook, done)
    return True


def pauses_before(session: StackSession, definition: Definition, resource: Resource | None, action: Action) -> bool:
    """Pause before a resource is created or updated, like ``pauses``. The resource may not exist yet."""
    hook = f"pre-{action.lower()}"
    if hook not in definition.hooks or session.stack.action not in _DURING[action]:
        return False
    if resource is None:
        resource = Resource(
            id=str(uuid4()),
            stack_id=session.stack.id,
            name=definition.name,
            type=definition.type,
            action=Action.INIT,
            status=Status.COMPLETE,
            definition={"mapped_from": definition.mapped_from} if definition.mapped_from else {},
            requires=session.resources.requirements(definition),
            created_at=session.tx.now,
        )
        session.resources.add(resource)
    _stop(session, resource, hook, action)
    session.plan.start(definition.name)
    return True


def _stop(session: StackSession, resource: Resource, hook: str, action: Action) -> None:
    stopped = replace(resource, hook=hook)
    session.resources.change(stopped)
    session.events.record(session.stack, replace(stopped, reason=f"{action} paused until Hook {hook} is cleared"))
