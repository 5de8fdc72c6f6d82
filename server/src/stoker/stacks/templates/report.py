"""The errors and warnings of all templates of one request, with their places, and the check of properties for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stoker import hot
from stoker.backends.provider import Constraints
from stoker.hot import UNKNOWN, Definition, Flaw, Flaws
from stoker.hot.flaw import Path, heat_path
from stoker.model.errors import RequestLimitExceeded, StokerError
from stoker.resources import properties as schemas
from stoker.resources.base import Properties, ResourceType
from stoker.resources.properties import PropertyError
from stoker.stacks.engine import Engine
from stoker.stacks.engine.decisions import evaluate_map
from stoker.stacks.templates.scope import IncorrectAttribute, StaticScope

#: Maximum number of warnings, because they are sent in a response header.
MOST_WARNINGS = 20


class FlawReport:
    """Collects flaws at the template that is being checked: the outermost one, or a nested one within ``nest``."""

    def __init__(self, flaws: Flaws) -> None:
        """Errors are added to ``flaws``."""
        self._top_flaws = flaws
        #: Errors of the template that is being checked, with paths in that template.
        self.flaws = flaws
        self._warnings: list[Flaw] = []
        #: Names of the resources around the template that is being checked, and their places, from the outside in.
        self._names: list[str] = []
        self._places: list[str] = []

    @property
    def place(self) -> str:
        """The place of the template that is being checked; empty for the outermost one."""
        return "".join(self._places)

    def locate(self, name: str) -> tuple[str, str]:
        """Return the place of a resource, and the name of the resource in the outermost template that contains it."""
        return (f"{self.place}resources.{name}", self._names[0]) if self._names else (name, name)

    def add(self, flaw: Flaw) -> None:
        """Add an error."""
        self.flaws.add(flaw)

    def add_property_error(self, error: PropertyError, place: Path) -> None:
        """Add an error of the properties at ``place``."""
        path, shown = (*place, *error.path), heat_path((*place, *error.shown))
        self.add(Flaw(error.problem, path, error="Property error", place=shown))

    def warn(self, flaw: Flaw) -> None:
        """Add a warning, up to ``MOST_WARNINGS``."""
        if len(self._warnings) < MOST_WARNINGS:
            place = self.place.removesuffix(".")
            self._warnings.append(flaw.within(place, ()) if place else flaw)

    def warnings(self) -> list[str]:
        """Return the warnings as sentences."""
        return self._top_flaws.describe(self._warnings)

    @contextmanager
    def collect(self, path: Path, *, named_already: bool = False) -> Iterator[None]:
        """Add an error raised inside, which may be ``named_already``, and continue. A passed limit ends the check."""
        try:
            yield
        except RequestLimitExceeded as error:
            raise (error if named_already else self.with_place(error, path)) from None
        except StokerError as error:
            sentence = error.message if named_already else f"{heat_path(path)}: {error.message}"
            self.add(Flaw(sentence, path, type(error)))

    def with_place(self, error: RequestLimitExceeded, path: Path) -> RequestLimitExceeded:
        """Return the limit's error with the place of the value that exceeded it."""
        return RequestLimitExceeded(f"{self.place}{heat_path(path)}: {error.message}")

    @contextmanager
    def nest(self, name: str, file: str) -> Iterator[None]:
        """
        Collect the flaws of the template ``file`` inside the resource ``name``. An error raised inside ends the check
        of that template only, and counts if there is no other.
        """
        place, outer, inner = f"resources.{name}<{file}>", self.flaws, Flaws()
        self._names.append(name)
        self._places.append(f"{place}.")
        self.flaws = inner
        try:
            yield
        except RequestLimitExceeded:
            raise
        except StokerError as error:
            if not inner:
                inner.add(Flaw(error.message, (), type(error)))
        finally:
            self.flaws = outer
            self._names.pop()
            self._places.pop()
            for flaw in inner:
                outer.add(flaw.within(place, ("resources", name)))


class PropertyChecker:
    """Checks the resources of all templates of one request. ``constraints``: the cloud's checks of names, or None."""

    def __init__(self, engine: Engine, report: FlawReport, constraints: Constraints | None) -> None:
        self._engine = engine
        self._report = report
        self._constraints = constraints

    def check(
        self, kind: ResourceType, definition: Definition, scope: StaticScope, flawed: set[Path]
    ) -> tuple[Properties, Any]:
        """Return the resource's properties and metadata. ``flawed``: paths with errors that are reported already."""
        place: Path = ("resources", definition.name)
        values = self._values(definition.properties, (*place, "properties"), scope, flawed)
        metadata = self._map(definition.metadata, (*place, "metadata"), scope, flawed)
        policy = self._map(definition.update_policy, (*place, "update_policy"), scope, flawed)
        errors: list[PropertyError] = []
        checked = schemas.check(kind.properties, values, errors=errors)
        for property_error in errors:
            self._report.add_property_error(property_error, (*place, "properties"))
        if errors:
            return dict.fromkeys(checked, UNKNOWN), metadata
        self._check_references(kind, checked, (*place, "properties"))
        try:
            if kind.properties is not None:  # OS::Heat::None accepts anything
                kind.check_policy(policy or {}, checked)
        except PropertyError as error:
            self._report.add_property_error(error, (*place, "update_policy"))
        with self._report.collect((*place, "properties")):
            self._engine.validate(kind, checked)
        return checked, metadata

    def _check_references(self, kind: ResourceType, values: Properties, place: Path) -> None:
        """Add an error for each property that names an object which the cloud does not have."""
        if self._constraints is None or kind.properties is None:
            return
        for path, constraint, value in schemas.list_constrained(kind.properties, values):
            if problem := self._constraints.find_problem(constraint, value):
                self._report.add_property_error(PropertyError(path, problem), place)

    def _map(self, source: Any, place: Path, scope: StaticScope, flawed: set[Path]) -> Any:
        """Evaluate a part of the definition that must be a map. A part with an error stays as it is."""
        if source and not _is_flawed(place, flawed):
            with self._report.collect(place):
                return evaluate_map(source, scope)
        return source

    def _values(self, properties: Any, place: Path, scope: StaticScope, flawed: set[Path]) -> Any:
        """Evaluate the properties. A property with an error is UNKNOWN."""
        if not _is_flawed(place, flawed):
            try:
                return hot.evaluate(properties, scope)
            except RequestLimitExceeded as error:
                raise self._report.with_place(error, place) from None
            except StokerError as error:
                if not isinstance(properties, dict) or hot.is_call(properties, scope.version):
                    self._report.add(Flaw(f"{heat_path(place)}: {error.message}", place, type(error)))
                    return UNKNOWN
        return self._values_one_by_one(properties, place, scope, flawed)

    def _values_one_by_one(
        self, properties: Mapping[str, Any], place: Path, scope: StaticScope, flawed: set[Path]
    ) -> dict[str, Any]:
        """Evaluate the properties, and find the errors of all."""
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
                self._report.add(Flaw(error.message, path, place=heat_path((*path, "get_attr"))))
            except StokerError as error:
                self._report.add(Flaw(error.message, path, type(error), error="Property error", place=heat_path(path)))
        return values


def _is_flawed(place: Path, flawed: set[Path]) -> bool:
    """Whether an error in the part of a resource's definition at ``place`` is reported already."""
    return any(path[:3] == place for path in flawed)
