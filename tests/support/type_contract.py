"""The promises that every resource type keeps; tests of each distribution derive from ``TypeContract``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import pytest

from stoker.hot import UNKNOWN
from stoker.model.errors import StokerError
from stoker.resources.base import ResourceType
from stoker.resources.properties import PropertyError, check
from stoker.stacks import outputs as all_outputs
from stoker.store import stacks
from support.stacks import World, world
from support.templates import define, template

#: Attributes are computed from rows that the creation of every type stores on both kinds of database.
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class TypeContract:
    """Tests of a type, which is the parameter ``kind``."""

    #: Enough properties to create a resource.
    enough: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: For types whose properties name objects that only another resource creates: the properties and these resources.
    connections: ClassVar[Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    #: Types that wait for another resource.
    waits: ClassVar[Collection[str]] = ()
    #: Attributes of types whose attributes are named only at run time; the default is that of deployments.
    named_at_run_time: ClassVar[Mapping[str, list[str]]] = {}
    #: The files that the properties name.
    files: ClassVar[Mapping[str, str]] = {}

    def resources_of(self, kind: ResourceType) -> dict[str, Any]:
        """Return the resource ``r`` of a type, with the resources that it needs."""
        properties, others = self.connections.get(kind.name, (self.enough.get(kind.name, {}), {}))
        return {"r": {"type": kind.name, "properties": properties}, **others}

    def check_remains(self, heat: World) -> None:
        """Check that a deleted resource has left no rows of the distribution's own."""

    def test_defaults_fit_their_own_schema(self, kind):
        if kind.properties is None:
            return
        given = {name: each.default for name, each in kind.properties.items() if each.default is not None}
        needed = {name: UNKNOWN for name, each in kind.properties.items() if each.required}
        try:
            found = check(kind.properties, {**needed, **given})
        except PropertyError as error:
            raise AssertionError(f"{error.path}: {error.problem}") from None
        assert {name: found[name] for name in given} == given

    def test_validation_of_unknown_values_never_fails(self, kind):
        if kind.properties is None:
            return
        kind.validate(dict.fromkeys(kind.properties, UNKNOWN))

    def test_a_resource_is_created_and_deleted_without_remains(self, kind, store):
        heat = world(store)
        stack = heat.started(heat.create(template(self.resources_of(kind)), files=self.files))
        found = heat.resources(stack)["r"]
        if kind.name in self.waits:
            assert found.status.value == "IN_PROGRESS"
            heat.delete(stack)
            return
        if found.status.value == "IN_PROGRESS":
            stack = heat.complete(stack)
        assert stack.status.value == "COMPLETE"

        stack = heat.delete(stack)
        assert (stack.status.value, heat.resources(stack)) == ("COMPLETE", {})
        assert heat.deployments() == []
        self.check_remains(heat)
        assert heat.machines.asked == {}

    @ON_SQLITE
    def test_known_attributes_can_be_read(self, kind, store):
        heat = world(store)
        names = self.named_at_run_time.get(kind.name, ["deploy_stdout"]) if kind.attributes is None else kind.attributes
        outputs = {name: {"value": {"get_attr": ["r", name]}} for name in names}
        stack = heat.started(heat.create(template(self.resources_of(kind), outputs=outputs), files=self.files))

        with heat.store.read() as tx:
            found = all_outputs.all_values(tx, heat.engine, stacks.get(tx, stack.id))
        assert [each for each in found if "output_error" in each] == []

    @ON_SQLITE
    def test_unknown_attributes_are_refused_before_the_creation(self, kind, store):
        if kind.attributes is None:
            return
        heat = world(store)
        other = define("OS::Heat::Value", value={"get_attr": ["r", "no_such_thing"]})
        with pytest.raises(StokerError, match=r"The Referenced Attribute \(r no_such_thing\) is incorrect"):
            heat.create(template({**self.resources_of(kind), "other": other}), files=self.files)
