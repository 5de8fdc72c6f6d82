"""Pseudo parameters: every template has them without declaring them."""

from __future__ import annotations

from stoker.hot import syntaxes

STACK_ID = "OS::stack_id"
STACK_NAME = "OS::stack_name"
PROJECT_ID = "OS::project_id"

AWS_STACK_ID = "AWS::StackId"
AWS_STACK_NAME = "AWS::StackName"
AWS_REGION = "AWS::Region"

_HOT = frozenset((STACK_ID, STACK_NAME, PROJECT_ID))
_CFN = frozenset((AWS_STACK_ID, AWS_STACK_NAME, AWS_REGION))
#: Names that no parameter may have, in any syntax.
RESERVED = _HOT | _CFN


def names_of(version: str) -> frozenset[str]:
    """The pseudo parameters of a version."""
    return _CFN if version in syntaxes.versions() else _HOT
