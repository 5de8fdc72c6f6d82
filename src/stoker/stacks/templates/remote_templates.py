"""Checks of an OS::Heat::Stack before it exists: its region and its template."""

from __future__ import annotations

from collections.abc import Mapping
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

__all__ = ["TYPE", "check"]


def check(engine: Engine, properties: Properties, budget: Budget) -> None:
    """
    Check the properties of an OS::Heat::Stack.

    A template for another Heat is only parsed, because that Heat may have more types and functions. Raises
    StackValidationFailed in Heat's wording.
    """
    context = properties["context"]
    region = context.get("region_name") if isinstance(context, Mapping) else context
    if region is UNKNOWN:
        return
    if (problem := engine.env.remote_heats.problem(region)) is not None:
        raise StackValidationFailed(
            f'Cannot establish connection to Heat endpoint at region "{region}" due to "{problem}"'
        )
    text = properties["template"]
    if text is UNKNOWN:
        return
    try:
        if engine.env.remote_heats.is_local(region):
            _check(engine, text, properties["parameters"], budget)
        else:
            _read(text)
    except RequestLimitExceeded:
        raise
    except StokerError as error:
        raise StackValidationFailed(
            f'Failed validating stack template using Heat endpoint at region "{region}" due to "{clip(error.message)}"'
        ) from None


def _read(text: str) -> None:
    document = read(text, "Template", MAX_TEMPLATE)
    if not any(key in document for key in (VERSION_KEY, *CFN_VERSIONS.values())):
        raise StackValidationFailed("Template format version not found.")


def _check(engine: Engine, text: str, parameters: Any, budget: Budget) -> None:
    from stoker.stacks.templates.check import Checker  # check.py imports this module

    flaws = Flaws(text)
    template = hot.parse(text, {}, flaws)
    supplied = parameters if isinstance(parameters, Mapping) else {}
    resolved = {name: value for name, value in supplied.items() if not hot.weigh(value)[1]}
    own = Flaws()
    bound = hot.bind(template, Environment(), supplied=resolved, pseudo={}, flaws=own)
    for flaw in own:
        # A value that is not yet known counts as missing in ``bind``.
        is_unknown = parameters is UNKNOWN or (
            flaw.path and flaw.path[-1] in supplied and flaw.path[-1] not in resolved
        )
        if not is_unknown:
            flaws.add(flaw)
    values = {**bound.values, **dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN)}
    decided = hot.decide(template, values, {}, budget, flaws)
    Checker(engine, {}, budget, flaws).check(decided, values, Environment())
    flaws.raise_any()
