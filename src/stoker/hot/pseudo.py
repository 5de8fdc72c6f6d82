"""The parameters that every template has without declaring them."""

from __future__ import annotations

STACK_ID = "OS::stack_id"
STACK_NAME = "OS::stack_name"
PROJECT_ID = "OS::project_id"

PSEUDO = frozenset((STACK_ID, STACK_NAME, PROJECT_ID))
