"""
A stack's template, environment and files as shown to people, without hidden parameters; export and abandonment.

Texts that an author wrote into a template stay, except for defaults of hidden parameters. A nested stack is shown
without any hidden values of the stacks around it: its parameters come from these stacks, and templates of groups
contain them. An abandoned stack leaves all its objects in place for another stack to adopt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.hot import Environment
from stoker.model.secrets import REDACTED, mask
from stoker.model.stack import Source, Stack
from stoker.stacks.engine import Engine, operation
from stoker.stacks.engine.progress import commit
from stoker.stacks.engine.session import StackSession
from stoker.stacks.outputs import prime_tree
from stoker.store import resources, stacks
from stoker.store.tx import Tx

_SECTIONS = (("parameters", "default"), ("Parameters", "Default"))


def redacted_template(tx: Tx, stack: Stack, source: Source) -> dict[str, Any]:
    """Return the stack's template without defaults of hidden parameters and secret inputs."""
    hidden = stack.parameters.get("hidden", ())
    template = dict(source.template)
    for section, default in _SECTIONS:
        if isinstance(declared := template.get(section), Mapping):
            template[section] = {
                name: {**schema, default: REDACTED} if name in hidden and default in schema else schema
                for name, schema in declared.items()
            }
    if isinstance(resources := template.get("resources"), Mapping):
        template["resources"] = {name: _redact_resource(resource) for name, resource in resources.items()}
    if stack.parent_id is None:
        return template
    redacted: dict[str, Any] = tx.secrets.redact(template)
    return redacted


def _redact_resource(resource: Any) -> Any:
    """Redact the defaults of secret inputs in a config."""
    if not (isinstance(resource, Mapping) and isinstance(properties := resource.get("properties"), Mapping)):
        return resource
    if not isinstance(inputs := properties.get("inputs"), list):
        return resource
    return {**resource, "properties": {**properties, "inputs": [_redact_input(entry) for entry in inputs]}}


def _redact_input(entry: Any) -> Any:
    is_secret = isinstance(entry, Mapping) and entry.get("secret") and "default" in entry
    return {**entry, "default": REDACTED} if is_secret else entry


def redacted_environment(tx: Tx, stack: Stack, source: Source) -> dict[str, Any]:
    """
    Return the stack's environment without hidden values. Of the parameter defaults, which may be secrets, those are
    shown that a template of the tree declares and none hides.
    """
    shown = Environment.parse(source.environment).to_json()
    hidden = set(stack.parameters.get("hidden", ()))
    parameters = {**shown.get("parameters", {}), **source.supplied}
    if defaults := shown.get("parameter_defaults"):
        tree = [stack, *stacks.prime(tx, stack.root_id)]
        names = {name for member in tree for name in member.parameters.get("values", ())}
        hidden |= {name for member in tree for name in member.parameters.get("hidden", ())}
        shown["parameter_defaults"] = tx.secrets.redact(mask(defaults, hidden | (defaults.keys() - names)))
    return {**shown, "parameters": tx.secrets.redact(mask(parameters, hidden))}


def visible_files(tx: Tx, stack: Stack) -> dict[str, str]:
    """Return the files of the whole tree, which belong to the root. Nested stacks have no files of their own."""
    stacks.prime(tx, stack.root_id)  # adds the hidden values of the whole tree to the transaction, for redaction
    redacted: dict[str, str] = tx.secrets.redact(stacks.source(tx, stack.root_id).files)
    return redacted


def export(tx: Tx, stack: Stack) -> dict[str, Any]:
    """Return Heat's abandon data: everything needed to adopt the stack, including values of hidden parameters."""
    source = stacks.source(tx, stack.id)
    environment = dict(source.environment)
    parameters = {**environment.get("parameters", {}), **source.supplied}
    environment["parameters"] = parameters
    prime_tree(tx, stack.root_id)
    return {
        "name": stack.name,
        "id": stack.id,
        "action": stack.action.value,
        "status": stack.status.value,
        "template": dict(source.template),
        "environment": environment,
        "files": dict(source.files),
        "project_id": stack.project_id,
        "stack_user_project_id": stack.user_project_id,
        "tags": list(stack.tags),
        "resources": _resources(tx, stack),
    }


def redacted_export(tx: Tx, stack: Stack) -> dict[str, Any]:
    """Return the abandon data as shown to people, without secrets."""
    data, source = export(tx, stack), stacks.source(tx, stack.id)
    return {
        **data,
        "template": redacted_template(tx, stack, source),
        "environment": redacted_environment(tx, stack, source),
        "files": visible_files(tx, stack),
        "resources": tx.secrets.redact(data["resources"]),
    }


def _resources(tx: Tx, stack: Stack) -> dict[str, Any]:
    inner = {nested.parent_resource_id: nested for nested in stacks.children(tx, stack.id)}
    return {
        resource.name: {
            "name": resource.name,
            "resource_id": resource.physical_id,
            "type": resource.declared_type,
            "action": resource.action.value,
            "status": resource.status.value,
            "metadata": dict(resource.metadata),
            "resource_data": dict(resource.data),
            **({"resources": _resources(tx, inner[resource.id])} if resource.id in inner else {}),
        }
        for resource in resources.of_stack(tx, stack.id)
        if resource.current
    }


def abandon(tx: Tx, engine: Engine, stack_id: str) -> dict[str, Any]:
    """Delete a stack without deleting its objects. Return its abandon data. Raises ActionInProgress."""
    stack = stacks.get(tx, stack_id, for_update=True)
    operation.refuse_busy(stack)
    exported = export(tx, stack)
    for member in stacks.tree(tx, stack.id):
        session = StackSession(tx, engine, member)
        for resource in session.resources.load_all():
            operation.disown(tx, engine, resource)
        operation.delete_alone(session, "Stack ABANDON completed successfully")
        commit(session)
    return exported
