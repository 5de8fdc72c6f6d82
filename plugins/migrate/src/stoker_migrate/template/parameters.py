"""Adds and removes parameters of a migrated template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_migrate.template.parts import Change, Interface, NewParameter, TemplateContext
from stoker_migrate.template.references import list_parameters
from stoker_migrate.template.source_text import SourceText

#: Beginnings of custom constraints that only a cloud can check.
_CLOUD_CONSTRAINTS = ("nova.", "neutron.", "glance.", "cinder.", "keystone.", "barbican.", "trove.", "designate.")


def add_parameters(source: SourceText, added: Mapping[str, NewParameter]) -> None:
    """Add the parameters to the section of a template, which is created if necessary."""
    schemas = {name: parameter.schema() for name, parameter in added.items()}
    if not schemas:
        return
    if isinstance(source.data.get("parameters"), dict):
        for name, schema in schemas.items():
            source.add(("parameters",), name, schema)
    elif "parameters" in source.data:
        source.replace(("parameters",), schemas)
    else:
        after = "description" if "description" in source.data else "heat_template_version"
        source.add((), "parameters", schemas, after=after)


def remove_unused(source: SourceText, used_before: set[str], interface: Interface, context: TemplateContext) -> None:
    """Remove the parameters that only dropped parts used, and the constraints that only a cloud can check."""
    parameters = source.section("parameters")
    unused = [name for name in parameters if name in used_before - list_parameters(source.data)]
    for name in unused:
        source.remove(("parameters", name))
        interface.removed.add(name)
        context.note(("parameters", name), Change.DROPPED, "only dropped parts used it")
    _remove_from_groups(source, set(unused))
    for name, schema in parameters.items():
        if name not in unused and isinstance(schema, dict):
            _remove_constraints(source, name, schema, context)


def _remove_from_groups(source: SourceText, names: set[str]) -> None:
    groups = source.data.get("parameter_groups")
    for number, group in enumerate(groups if isinstance(groups, list) else ()):
        members = group.get("parameters") if isinstance(group, dict) else None
        for index, member in enumerate(members if isinstance(members, list) else ()):
            if isinstance(member, str) and member in names:
                source.remove(("parameter_groups", number, "parameters", index))


def _remove_constraints(source: SourceText, name: str, schema: Mapping[str, Any], context: TemplateContext) -> None:
    constraints = schema.get("constraints")
    for index, constraint in enumerate(constraints if isinstance(constraints, list) else ()):
        custom = constraint.get("custom_constraint") if isinstance(constraint, dict) else None
        if isinstance(custom, str) and custom.startswith(_CLOUD_CONSTRAINTS):
            source.remove(("parameters", name, "constraints", index))
            context.note(("parameters", name), Change.DROPPED, f"the constraint {custom}, which only a cloud checks")
