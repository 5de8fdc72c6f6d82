"""The template files, environment, template and resources of nested stacks, as stored. No engine is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from stoker.model.stack import Resource, Source
from stoker.resources.base import Context, ResourceFailure
from stoker.store import resources, rows, stacks


def find_root(context: Context) -> Source:
    """Return the source of the root stack, which has the files and the environment of the stack tree."""
    return stacks.source(context.tx, stacks.get(context.tx, context.stack_id).root_id)


def file(context: Context, name: str) -> str:
    """Return the text of a file that was sent with the root stack's template. Raises ResourceFailure."""
    files = find_root(context).files
    if name not in files:
        raise ResourceFailure(missing(name))
    return files[name]


def missing(name: str) -> str:
    """Return the error for a template that no file of the request provides."""
    return f"the template {name} is not among the files of the stack: send its text in `files` under this name"


def fingerprint(context: Context) -> str:
    """Return a digest of the files and the environment of the stack tree."""
    root = find_root(context)
    environment = root.environment
    content = rows.dump([root.files, environment.get("parameter_defaults"), environment.get("resource_registry")])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def template(context: Context, resource: Resource) -> Mapping[str, Any]:
    """Return the template of the nested stack's last create or update; empty if there is no nested stack."""
    stack = stacks.find(context.tx, resource.physical_id) if resource.physical_id else None
    return {} if stack is None else stacks.source(context.tx, stack.id).template


def members(context: Context, resource: Resource) -> Sequence[Resource]:
    """Return all resources inside, replaced ones included; empty if there is no nested stack."""
    stack = stacks.find(context.tx, resource.physical_id) if resource.physical_id else None
    return () if stack is None else resources.of_stack(context.tx, stack.id)
