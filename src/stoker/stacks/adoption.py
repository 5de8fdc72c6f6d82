"""
What one stack abandoned, taken over by another.

Until its type has agreed, a resource has nothing of what it is to take over: who hands in the data may name anybody's
things there, and what a resource has is shown and deleted with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.stacks.prepare import Prepared
from stoker.store.tx import Tx


def adopted(data: Any) -> Mapping[str, Any]:
    """The resources of abandon data. Raises Invalid for what is none."""
    found = data.get("resources") if isinstance(data, Mapping) else None
    if not isinstance(found, Mapping) or not all(isinstance(each, Mapping) for each in found.values()):
        raise Invalid('adopt_stack_data must be what abandon gave: a map with "template" and "resources"')
    for name, each in found.items():
        if not isinstance(each.get("resource_id"), str | None) or not isinstance(
            each.get("resource_data") or {}, Mapping
        ):
            raise Invalid(
                f"adopt_stack_data: resources.{name} needs a resource_id that is text, and resource_data a map"
            )
    return found


#: Where a stand-in keeps what it is to take over, in its data.
_TAKES = "takes"


def stand_ins(tx: Tx, stack_id: str, prepared: Prepared, found: Mapping[str, Any]) -> list[Resource]:
    """Rows that say what resources of a stack about to begin are to take over."""
    made = []
    for name, said in found.items():
        definition = prepared.definitions.get(name)
        if definition is None or not said.get("resource_id"):
            continue
        # "adopt" is ours to say: what comes under "resources" has been looked through.
        data = {key: value for key, value in (said.get("resource_data") or {}).items() if key != "adopt"}
        if "resources" in said:
            data["adopt"] = adopted(said)
        made.append(
            Resource(
                id=str(uuid4()),
                stack_id=stack_id,
                name=name,
                type=definition["type"],
                action=Action.INIT,
                status=Status.COMPLETE,
                data={_TAKES: {"physical_id": said["resource_id"], "data": data}},
                created_at=tx.now,
            )
        )
    return made


def is_stand_in(resource: Resource) -> bool:
    return resource.action is Action.INIT and _TAKES in resource.data


def with_what_it_takes(resource: Resource) -> Resource:
    """For its type to look at; not to be kept before the type has agreed."""
    takes = resource.data[_TAKES]
    return replace(resource, physical_id=takes["physical_id"], data=takes["data"])
