"""Checks of a resource's properties, metadata and update policy, whose values are evaluated as far as possible."""

from __future__ import annotations

from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Definition, Flaw
from stoker.hot.paths import Path, heat_path
from stoker.hot.words import kind_of
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.resources import properties as schemas
from stoker.resources.base import Properties, ResourceType
from stoker.resources.cloud import Constraints
from stoker.resources.properties import PropertyError
from stoker.stacks.templates.flaw_report import FlawReport
from stoker.stacks.templates.scope import IncorrectAttribute, StaticScope


class PropertyChecker:
    """Checks the resources of all templates of one request. ``constraints``: the cloud's checks of names, or None."""

    def __init__(self, report: FlawReport, constraints: Constraints | None) -> None:
        self._report = report
        self._constraints = constraints

    def check(
        self, kind: ResourceType, definition: Definition, scope: StaticScope, flawed: set[Path]
    ) -> tuple[Properties, Any]:
        """
        Return the resource's properties and metadata.

        ``flawed`` has the paths with errors from the parser, which are not reported twice.
        """
        place: Path = ("resources", definition.name)
        values = self._values(definition.properties, (*place, "properties"), scope, flawed)
        metadata, policy = definition.metadata, definition.update_policy
        if metadata and not any(path[:3] == (*place, "metadata") for path in flawed):
            with self._report.collect((*place, "metadata")):
                metadata = _map(definition.metadata, scope)
        if policy and not any(path[:3] == (*place, "update_policy") for path in flawed):
            with self._report.collect((*place, "update_policy")):
                policy = _map(definition.update_policy, scope)
        errors: list[PropertyError] = []
        checked: Properties = {}
        try:
            if kind.properties is None:
                checked = schemas.plain(values)
            else:
                checked = schemas.check(kind.properties, values, errors=errors)
        except PropertyError as error:
            errors.append(error)
        for property_error in errors:
            self._report.add_property_error(property_error, (*place, "properties"))
        if errors:
            return dict.fromkeys(kind.properties or (), UNKNOWN), metadata
        self._check_references(kind, checked, (*place, "properties"))
        try:
            kind.check_policy(policy or {}, checked)
        except PropertyError as error:
            self._report.add_property_error(error, (*place, "update_policy"))
        with self._report.collect((*place, "properties")):
            kind.validate(checked)
        return checked, metadata

    def _check_references(self, kind: ResourceType, values: Properties, place: Path) -> None:
        """Add an error for each property that names an object which the cloud does not have."""
        if self._constraints is None or kind.properties is None:
            return
        for path, constraint, value in schemas.list_constrained(kind.properties, values):
            if problem := self._constraints.find_problem(constraint, value):
                self._report.add_property_error(PropertyError(path, problem), place)

    def _values(self, properties: Any, place: Path, scope: StaticScope, flawed: set[Path]) -> Any:
        """Evaluate the properties. A property with an error is UNKNOWN."""
        if not any(path[:3] == place for path in flawed):
            try:
                return hot.evaluate(properties, scope)
            except RequestLimitExceeded as error:
                raise self._report.with_place(error, place) from None
            except StokerError as error:
                if not isinstance(properties, dict) or hot.is_call(properties, scope.version):
                    self._report.add(Flaw(f"{heat_path(place)}: {error.message}", place, type(error)))
                    return UNKNOWN
        # One by one, to find all errors.
        values = dict.fromkeys(properties, UNKNOWN)
        for name, value in properties.items():
            path = (*place, name)
            if path in flawed:
                continue
            try:
                values[name] = hot.evaluate(value, scope)
            except RequestLimitExceeded as error:
                raise self._report.with_place(error, path) from None
            except IncorrectAttribute as error:
                # Heat reports this error at the call, any other at the property.
                self._report.add(Flaw(error.with_hint(), path, place=heat_path((*path, "get_attr"))))
            except StokerError as error:
                self._report.add(Flaw(error.message, path, type(error), error="Property error", place=heat_path(path)))
        return values


def _map(source: Any, scope: StaticScope) -> Any:
    value = hot.evaluate(source, scope)
    if value is not UNKNOWN and value is not None and not isinstance(value, dict):
        raise StackValidationFailed(f"Value must be a map, not {kind_of(value)}")
    return value
