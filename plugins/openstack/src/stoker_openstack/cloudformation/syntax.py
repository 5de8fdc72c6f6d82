"""CloudFormation's syntax for the server, which finds it by its entry point."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from stoker.hot.syntaxes import Syntax
from stoker_openstack.cloudformation import cfn, foreign
from stoker_openstack.cloudformation.functions import FUNCTIONS

#: The functions of HOT to which CloudFormation's are translated.
_HOT = ("get_param", "get_resource", "get_attr", "list_join", "str_replace", "resource_facade")


def _replace_in_hot(value: Any, resources: Collection[str], version: str) -> Any:
    return foreign.rewrite(value, resources, None, version)


SYNTAX = Syntax(
    versions=cfn.VERSIONS,
    translate=cfn.in_hot_words,
    source_path=cfn.cfn_path,
    calls=frozenset((*_HOT, *(function.name for function in FUNCTIONS))),
    functions=FUNCTIONS,
    replaced=foreign.REPLACED,
    replace_in_hot=_replace_in_hot,
    replaces_until=foreign.REPLACED_UNTIL,
)
