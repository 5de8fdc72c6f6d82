"""Validation: describes a template without creating a stack, in Heat's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import hot
from stoker.backends.provider import Constraints
from stoker.hot import Environment, Flaws, ParameterSchema, Template
from stoker.hot.flaw import JOINT_OF_VALIDATE
from stoker.model.config import INPUT_TYPES
from stoker.model.secrets import REDACTED, mask
from stoker.resources.roles import is_template_name
from stoker.stacks.engine import Engine
from stoker.stacks.templates.check import Checker
from stoker.stacks.templates.outline import Outline, OutlinedResource
from stoker.stacks.templates.prepare import StackRequest, check, mapping, read

#: Heat's names of the types of parameters.
_TYPES = {kind: name for name, kind in INPUT_TYPES.items()}


def describe_template(
    engine: Engine, request: StackRequest, *, show_nested: bool, constraints: Constraints | None = None
) -> dict[str, Any]:
    """Return Heat's answer to ``validate``. Parameters may be missing. Raises a kind of Invalid."""
    flaws = Flaws(request.template, JOINT_OF_VALIDATE)
    template, files, environment = read(request, flaws)
    supplied = mapping(request.parameters, "parameters")
    bound = hot.bind(template, environment, supplied=supplied, flaws=flaws, may_miss=True)
    checker = Checker(engine, files, engine.budget(), flaws, constraints=constraints)
    outline, warnings = check(checker, template, bound, environment)
    parameters, defaults = {**environment.parameters, **supplied}, environment.parameter_defaults
    shown = _describe(template, parameters, defaults)
    shown["Environment"] = _environment(outline, environment, parameters)
    if show_nested and (nested := _nested(outline, defaults)):
        shown["NestedParameters"] = nested
    if warnings:
        shown["Warnings"] = list(warnings)
    return shown


def _describe(template: Template, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Description": template.description,
        "Parameters": {
            schema.name: _parameter(schema, parameters, defaults) for schema in template.parameters.values()
        },
    }
    if template.parameter_groups:
        shown["ParameterGroups"] = [dict(group) for group in template.parameter_groups]
    return shown


def _parameter(schema: ParameterSchema, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Type": _TYPES[schema.type],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label or schema.name,
    }
    default = defaults.get(schema.name)
    if default is not None:
        shown["Default"] = REDACTED if schema.hidden else default
    elif schema.written_default is not None:
        shown["Default"] = schema.written_default
    if parameters.get(schema.name) is not None:
        shown["Value"] = REDACTED if schema.hidden else parameters[schema.name]
    if schema.tags:
        shown["Tags"] = list(schema.tags)
    return shown | _constraints(schema)


def _constraints(schema: ParameterSchema) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for constraint in schema.constraints:
        shown |= {name: value for name, value in constraint.to_json().items() if value is not None}
    if descriptions := [constraint.description for constraint in schema.constraints if constraint.description]:
        shown["ConstraintDescription"] = " ".join(descriptions)
    return shown


def _environment(outline: Outline, environment: Environment, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment as Heat does: with the request's parameters, and with templates used as types."""
    hidden = {schema.name for schema in outline.template.parameters.values() if schema.hidden}
    shown = environment.to_json()
    files = {
        resource.type.name: resource.type.name
        for resource in outline.resources.values()
        if resource.definition.mapped_from is None and is_template_name(resource.type.name)
    }
    return {
        "parameters": mask(parameters, hidden),
        "parameter_defaults": mask(shown["parameter_defaults"], hidden),
        "resource_registry": {**files, **shown["resource_registry"]},
        "event_sinks": shown["event_sinks"],
    }


def _nested(outline: Outline, defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _inside(resource, resource.inside, defaults)
        for name, resource in outline.resources.items()
        if resource.inside is not None
    }


def _inside(resource: OutlinedResource, inside: Outline, defaults: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in resource.properties.items() if not hot.has_unknown(value)}
    shown = {
        "Type": resource.definition.mapped_from or resource.definition.type,
        **_describe(inside.template, values, defaults),
    }
    if deeper := _nested(inside, defaults):
        shown["NestedParameters"] = deeper
    return shown
