"""The resources of one stack within one transaction: each is read once, and changes are written together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stoker import hot
from stoker.model.stack import Resource
from stoker.store import resources
from stoker.store.tx import Tx


class ResourceSet:
    """The resources of a stack, by name (the current ones) and by id, with changes that are not yet written."""

    def __init__(self, tx: Tx, stack_id: str) -> None:
        self._tx = tx
        self._stack_id = stack_id
        self._by_name: dict[str, Resource | None] = {}
        self._by_id: dict[str, Resource] = {}
        self._is_complete = False
        self._new: dict[str, Resource] = {}
        self._changed: dict[str, Resource] = {}
        self._dropped: list[str] = []

    def find(self, name: str) -> Resource | None:
        """Return the current incarnation of the resource called ``name``, or None."""
        if name not in self._by_name:
            stored = None if self._is_complete else resources.find_by_name(self._tx, self._stack_id, name)
            self._by_name[name] = stored
        return self._by_name[name]

    def find_by_id(self, id: str) -> Resource | None:
        """Return the resource with the id, current or not, or None."""
        if id not in self._by_id and not self._is_complete:
            stored = resources.find(self._tx, id)
            if stored is not None:
                self._remember(stored)
        return self._by_id.get(id)

    def requirements(self, definition: hot.Definition) -> dict[str, str | None]:
        """Return the ids of the resources that ``definition`` requires, by name. The clean-up deletes them after it."""
        required = {name: self.find(name) for name in sorted(definition.requires)}
        return {name: resource.id if resource else None for name, resource in required.items()}

    def preload(self, everything: Iterable[Resource]) -> None:
        """Take ``everything`` as all resources of the stack, so that no later lookup reads the database."""
        for resource in everything:
            if resource.id not in self._by_id:
                self._remember(resource)
        self._is_complete = True

    def names(self) -> list[str]:
        """Return the names of all current resources. Requires ``preload``."""
        assert self._is_complete
        return [name for name, resource in self._by_name.items() if resource is not None]

    def add(self, resource: Resource) -> None:
        """Add a new resource."""
        self._new[resource.id] = resource
        self._remember(resource)

    def change(self, resource: Resource) -> None:
        """Replace a resource by its changed copy."""
        (self._new if resource.id in self._new else self._changed)[resource.id] = resource
        self._remember(resource)

    def retire(self, resource: Resource) -> None:
        """Free the name of a resource for a replacement. The resource itself stays until the clean-up."""
        self._by_name[resource.name] = None
        self.change(replace(resource, current=False))

    def find_retired(self, name: str) -> list[Resource]:
        """Return the incarnations of the resource called ``name`` that are no longer current, the latest first."""
        if self._is_complete:
            incarnations = sorted(self._by_id.values(), key=lambda resource: resource.created_at)
        else:
            stored = resources.retired(self._tx, self._stack_id, name)
            incarnations = [self._by_id.get(resource.id, resource) for resource in stored]
        retired = [item for item in incarnations if item.name == name and not item.current]
        return [item for item in reversed(retired) if item.id not in self._dropped]

    def reinstate(self, resource: Resource) -> Resource:
        """Make a retired resource the current one again. The name must be free."""
        reinstated = replace(resource, current=True)
        self.change(reinstated)
        return reinstated

    def drop(self, resource: Resource) -> None:
        """Remove a resource."""
        self._changed.pop(resource.id, None)
        self._by_id.pop(resource.id, None)
        if self._new.pop(resource.id, None) is None:
            self._dropped.append(resource.id)
        if resource.current:
            self._by_name[resource.name] = None

    def unsaved(self) -> list[Resource]:
        """Return the resources that are new or changed since the last ``save``."""
        return [*self._new.values(), *self._changed.values()]

    def save(self) -> None:
        """Write all changes."""
        resources.delete_all(self._tx, self._dropped)
        resources.add_all(self._tx, list(self._new.values()))
        resources.save_all(self._tx, self._changed.values())
        self._dropped, self._new, self._changed = [], {}, {}

    def _remember(self, resource: Resource) -> None:
        self._by_id[resource.id] = resource
        if resource.current:
            self._by_name[resource.name] = resource
