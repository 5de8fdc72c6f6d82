"""
A stack's template, environment and files as shown to people, without the values of hidden parameters.

Texts that an author wrote into a template stay, except for defaults of hidden parameters. A nested stack is shown
without any hidden values of the stacks around it: its parameters come from these stacks, and templates of groups
contain them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stoker.hot import Environment
from stoker.model.secrets import REDACTED
from stoker.model.stack import Source, Stack
from stoker.store import stacks
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
    Return the stack's environment without hidden values.

    A parameter default is shown only if a template of the tree declares the parameter and no template hides it. Any
    other default may be a secret.
    """
    shown = Environment.parse(source.environment).to_json()
    hidden = set(stack.parameters.get("hidden", ()))
    parameters = {**shown.get("parameters", {}), **source.supplied}
    if defaults := shown.get("parameter_defaults"):
        tree = [stack, *stacks.prefetch(tx, [stack.root_id])]
        names = {name for member in tree for name in member.parameters.get("values", ())}
        hidden |= {name for member in tree for name in member.parameters.get("hidden", ())}
        shown["parameter_defaults"] = tx.secrets.redact(_without(defaults, hidden | (defaults.keys() - names)))
    return {**shown, "parameters": tx.secrets.redact(_without(parameters, hidden))}


def visible_files(tx: Tx, stack: Stack) -> dict[str, str]:
    """Return the files of the whole tree, which belong to the root. Nested stacks have no files of their own."""
    stacks.prefetch(tx, [stack.root_id])  # adds the hidden values of the whole tree to the transaction, for redaction
    redacted: dict[str, str] = tx.secrets.redact(stacks.source(tx, stack.root_id).files)
    return redacted


def _without(values: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    return {name: REDACTED if name in hidden else value for name, value in values.items()}
