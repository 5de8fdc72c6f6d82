"""Checks of an OS::Heat::Stack before it exists: its region and its template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Budget, Environment, Flaws
from stoker.hot.bounds import MAX_TEMPLATE
from stoker.hot.text import read
from stoker.hot.versions import CFN_VERSIONS, VERSION_KEY
from stoker.hot.words import clip
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.resources.base import Properties
from stoker.resources.remote_stack import TYPE
from stoker.stacks.engine import Engine

__all__ = ["TYPE", "Around", "check"]


@dataclass(frozen=True, slots=True)
class Around:
    """The template with the OS::Heat::Stack, whose files and environment the remote stack gets."""

    engine: Engine
    files: Mapping[str, str]
    environment: Environment
    budget: Budget
    remote_depth: int


def check(around: Around, properties: Properties) -> None:
    """
    Check the properties of an OS::Heat::Stack.

    A template for another Heat is only parsed, because that Heat may have more types and functions. Raises
    StackValidationFailed in Heat's wording.
    """
    context = properties["context"]
    region = context.get("region_name") if isinstance(context, Mapping) else context
    if region is UNKNOWN:
        return
    engine = around.engine
    if (problem := engine.env.remote_heats.problem(region)) is not None:
        raise StackValidationFailed(
            f'Cannot establish connection to Heat endpoint at region "{region}" due to "{problem}".'
            f" {engine.env.remote_heats.remedy()}"
        )
    text = properties["template"]
    if text is UNKNOWN:
        return
    try:
        if engine.env.remote_heats.is_local(region):
            _check(around, text, properties["parameters"])
        else:
            _read(text)
    except RequestLimitExceeded:
        raise
    except StokerError as error:
        raise StackValidationFailed(
            f'Failed validating stack template using Heat endpoint at region "{region}"'
            f' due to "ERROR: {clip(error.message)}"'
        ) from None


def _read(text: str) -> None:
    document = read(text, "Template", MAX_TEMPLATE)
    if not any(key in document for key in (VERSION_KEY, *CFN_VERSIONS.values())):
        raise StackValidationFailed("Template format version not found.")


def _check(around: Around, text: str, parameters: Any) -> None:
    from stoker.stacks.templates.check import Checker  # check.py imports this module

    flaws = Flaws(text)
    environment = replace(around.environment, parameters={})
    template = hot.parse(text, around.files, flaws)
    supplied = parameters if isinstance(parameters, Mapping) else {}
    resolved = {name: value for name, value in supplied.items() if not hot.weigh(value)[1]}
    own = Flaws()
    bound = hot.bind(template, environment, supplied=resolved, pseudo={}, flaws=own)
    for flaw in own:
        # A value that is not yet known counts as missing in ``bind``.
        is_unknown = parameters is UNKNOWN or (
            flaw.path and flaw.path[-1] in supplied and flaw.path[-1] not in resolved
        )
        if not is_unknown:
            flaws.add(flaw)
    values = {**bound.values, **dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN)}
    decided = hot.decide(template, values, around.files, around.budget, flaws)
    checker = Checker(around.engine, around.files, around.budget, flaws, remote_depth=around.remote_depth + 1)
    checker.check(decided, values, environment)
    flaws.raise_any()
