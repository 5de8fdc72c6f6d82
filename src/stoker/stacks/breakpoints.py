"""
Breakpoints: where the environment has an operation stop before or after what it does to a resource.

The resource carries the name of the hook it stands at, its step stays under way, and a signal that unsets the hook
lets both go on.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from stoker.hot import Definition
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.stacks.transition import Transition

#: The stack's action during which each one counts; as in Heat, what an update creates or removes doesn't pause.
_DURING = {Action.CREATE: (Action.CREATE,), Action.UPDATE: (Action.UPDATE,), Action.DELETE: (Action.DELETE,)}


def pauses(transition: Transition, resource: Resource, when: str, action: Action | None = None) -> bool:
    """Stop the resource there, if it has that hook. ``when``: pre or post; ``action``: its present one."""
    done = action or resource.action
    hook = f"{when}-{done.lower()}"
    if hook not in resource.definition.get("hooks", ()) or transition.stack.action not in _DURING.get(done, ()):
        return False
    _stop(transition, resource, hook, done)
    return True


def pauses_before(transition: Transition, definition: Definition, resource: Resource | None, action: Action) -> bool:
    """The same for a resource that is about to be made or changed, and may not be there yet."""
    hook = f"pre-{action.lower()}"
    if hook not in definition.hooks or transition.stack.action not in _DURING[action]:
        return False
    if resource is None:
        resource = Resource(
            id=str(uuid4()),
            stack_id=transition.stack.id,
            name=definition.name,
            type=definition.type,
            action=Action.INIT,
            status=Status.COMPLETE,
            requires=transition.requirements(definition),
            created_at=transition.tx.now,
        )
        transition.add(resource)
    _stop(transition, resource, hook, action)
    transition.plan.start(definition.name)
    return True


def _stop(transition: Transition, resource: Resource, hook: str, action: Action) -> None:
    stopped = replace(resource, hook=hook)
    transition.change(stopped)
    transition.event(replace(stopped, reason=f"{action} paused until Hook {hook} is cleared"))
