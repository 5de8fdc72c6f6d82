"""
The template language (HOT): parses text into a checked ``Template`` and evaluates values with functions.

The package uses no I/O, no clock and no randomness. Every error is a ``StokerError`` that names the place, and the line
if the template is text.
"""

from __future__ import annotations

from stoker.hot.budget import Budget, BudgetLimits
from stoker.hot.calls import calls, literal, references
from stoker.hot.definition import Definition, inline_files, settings_of, with_setting
from stoker.hot.environment import Environment
from stoker.hot.evaluate import evaluate, is_call
from stoker.hot.flaw import Flaw, Flaws
from stoker.hot.functions import functions_of
from stoker.hot.parameters.bind import Parameters, bind
from stoker.hot.parameters.schema import ParameterSchema
from stoker.hot.paths import select
from stoker.hot.registry import Registry
from stoker.hot.scope import ALL_ATTRIBUTES, UNKNOWN, Scope, Values
from stoker.hot.template import OutputDefinition, Template, decide, order, parse
from stoker.hot.versions import VERSIONS, pseudo_parameters
from stoker.hot.weight import weigh

__all__ = [
    "ALL_ATTRIBUTES",
    "UNKNOWN",
    "VERSIONS",
    "Budget",
    "BudgetLimits",
    "Definition",
    "Environment",
    "Flaw",
    "Flaws",
    "OutputDefinition",
    "ParameterSchema",
    "Parameters",
    "Registry",
    "Scope",
    "Template",
    "Values",
    "bind",
    "calls",
    "decide",
    "evaluate",
    "functions_of",
    "inline_files",
    "is_call",
    "literal",
    "order",
    "parse",
    "pseudo_parameters",
    "references",
    "select",
    "settings_of",
    "weigh",
    "with_setting",
]
