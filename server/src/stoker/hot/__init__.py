"""
The template language (HOT): parses text into a checked ``Template`` and evaluates values with functions.

The package uses no I/O, no clock and no randomness. Every error is a ``StokerError`` that names the place, and the line
if the template is text.
"""

from __future__ import annotations

from stoker.hot.calls import calls, evaluate, is_call, literal, references
from stoker.hot.definition import Definition, inline_files, settings_of, with_setting
from stoker.hot.environment import Environment
from stoker.hot.flaw import Flaw, Flaws
from stoker.hot.functions import functions_of
from stoker.hot.functions.base import select
from stoker.hot.parameters import Parameters, ParameterSchema, bind
from stoker.hot.registry import Registry
from stoker.hot.scope import ALL_ATTRIBUTES, UNKNOWN, Budget, BudgetLimits, Scope, Values, has_unknown, weigh
from stoker.hot.syntaxes import VERSIONS, pseudo_parameters
from stoker.hot.template import OutputDefinition, Template, decide, order, parse

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
    "has_unknown",
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
