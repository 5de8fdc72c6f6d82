"""A template without a stack: what it asks for, in Heat's words, once it is known to hold together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Environment, ParameterSchema, Template
from stoker.model.errors import StackValidationFailed
from stoker.resources.nesting import TEMPLATE_ENDINGS
from stoker.stacks.check import Checker, parse_once
from stoker.stacks.engine import Engine
from stoker.stacks.prepare import Handed, mapping, read

_TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}


def validated(engine: Engine, handed: Handed, *, show_nested: bool) -> dict[str, Any]:
    """Heat's answer to ``validate``; parameters may be missing. Raises a kind of Invalid."""
    template, files, environment = read(handed)
    given = {**environment.parameter_defaults, **environment.parameters, **mapping(handed.parameters, "parameters")}
    values = {each.name: _value(each, given) for each in template.parameters.values()}
    bound = {**dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN), **values}
    Checker(engine, files).check(hot.decide(template, bound, files), bound, environment, handed.template)
    shown = _shown(template, given) | {"Environment": environment.to_json()}
    if show_nested and (nested := _nested(template, environment, files)):
        shown["NestedParameters"] = nested
    return shown


def _value(schema: ParameterSchema, given: Mapping[str, Any]) -> Any:
    chosen = given.get(schema.name)
    if chosen is None:
        return UNKNOWN if schema.default is None else schema.default
    try:
        return schema.accept(chosen)
    except ValueError as error:
        raise StackValidationFailed(f"Parameter '{schema.name}' is invalid: {error}") from None


def _shown(template: Template, given: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Description": template.description,
        "Parameters": {each.name: _parameter(each, given) for each in template.parameters.values()},
    }
    if template.parameter_groups:
        shown["ParameterGroups"] = [dict(group) for group in template.parameter_groups]
    return shown


def _parameter(schema: ParameterSchema, given: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Type": _TYPES[schema.type],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label or schema.name,
    }
    if schema.default is not None:
        shown["Default"] = schema.default
    if given.get(schema.name) is not None:
        shown["Value"] = "******" if schema.hidden else given[schema.name]
    if schema.tags:
        shown["Tags"] = list(schema.tags)
    for rule in schema.rules:
        shown |= {name: value for name, value in rule.constraint.shown().items() if value is not None}
        if rule.description:
            shown["ConstraintDescription"] = " ".join(
                filter(None, (shown.get("ConstraintDescription"), rule.description))
            )
    return shown


def _nested(template: Template, environment: Environment, files: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, each in template.resources.items():
        kind = environment.registry.resolve(each.type, name) or ""
        if kind.endswith(TEMPLATE_ENDINGS) and kind in files:
            inner = parse_once(files[kind])
            below = replace(environment, parameters={}, registry=environment.registry.below(name))
            given = {**below.parameter_defaults, **{key: part for key, part in each.properties.items() if _plain(part)}}
            found[name] = {"Type": each.type, **_shown(inner, given)}
            if deeper := _nested(inner, below, files):
                found[name]["NestedParameters"] = deeper
    return found


def _plain(value: Any) -> bool:
    """No function in it: the value is what will be handed in."""
    return not isinstance(value, Mapping | list) or not any(True for _ in hot.calls(value))
