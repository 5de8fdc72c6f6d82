"""
A stack as data: its template, environment and files as shown to people, without hidden parameters; what an export and
an abandonment give; and snapshots, which are exports that can be restored.

Texts that an author wrote into a template stay, except for defaults of hidden parameters. A nested stack is shown
without any hidden values of the stacks around it: its parameters come from these stacks, and templates of groups
contain them. An abandoned stack leaves all its objects in place for another stack to adopt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from msgspec import convert
from msgspec.structs import replace

from stoker.hot import Environment
from stoker.model.errors import Invalid, NotSupported
from stoker.model.secrets import REDACTED, mask
from stoker.model.stack import Action, Resource, Snapshot, Source, Stack, Status
from stoker.resources.base import DONE, SavesState
from stoker.stacks import operations
from stoker.stacks.engine import Engine, operation
from stoker.stacks.engine.actions import begin_action, finish_action
from stoker.stacks.engine.operation import SAVED
from stoker.stacks.engine.progress import advance, commit, lock_stack
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import Options
from stoker.stacks.outputs import prime_tree
from stoker.stacks.templates.prepare import ResolvedStack, prepare_again
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


#: Maximum number of snapshots of a stack, as in Heat.
MOST_SNAPSHOTS = 32
#: Resources after these actions keep their state: they do not exist yet, or have to be resumed first. Failed resources
#: keep theirs too: an update repairs them.
_NOT_TOUCHED = (Action.INIT, Action.SUSPEND)


def take_snapshot(tx: Tx, engine: Engine, stack_id: str, name: str | None) -> Snapshot:
    """Store a snapshot of a stack. Raises ActionInProgress, NotSupported in a deletion, Invalid beyond the maximum."""
    session = lock_stack(tx, engine, stack_id)
    stack = session.stack
    operation.refuse_busy(stack)
    if stack.action is Action.DELETE:
        raise NotSupported(f"A snapshot of a stack in {stack.action}_{stack.status} is not supported.")
    if stacks.count_snapshots(tx, stack_id) >= MOST_SNAPSHOTS:
        raise Invalid(f"a stack may have {MOST_SNAPSHOTS} snapshots, and this one has them: delete some")
    source = stacks.source(tx, stack_id)
    present = [resource for resource in resources.of_stack(tx, stack_id) if _is_touched(resource)]
    at_cloud = {resource.id for resource in present if Action.SNAPSHOT in session.type_of(resource).actions}
    operation.begin_snapshot(session, at_cloud)
    for resource in present:
        if resource.id not in at_cloud:
            finish_action(session, begin_action(session, resource, Action.SNAPSHOT), DONE, planned=False)
    snapshot = Snapshot(
        id=str(uuid4()),
        stack_id=stack_id,
        name=name,
        status=Status.IN_PROGRESS,
        reason=session.stack.reason,
        data={**redacted_export(tx, stack), "source": source},
        created_at=tx.now,
    )
    stacks.add_snapshot(tx, snapshot)
    advance(session)
    commit(session)
    return stacks.get_snapshot(tx, stack_id, snapshot.id)


def _is_touched(resource: Resource) -> bool:
    return resource.current and resource.action not in _NOT_TOUCHED and resource.status is Status.COMPLETE


def delete_snapshot(tx: Tx, engine: Engine, snapshot: Snapshot) -> None:
    """Delete a snapshot, and what clouds saved for it for present resources of the stack. Raises ActionInProgress."""
    saved = snapshot.data.get(SAVED) or {}
    if saved:
        session = lock_stack(tx, engine, snapshot.stack_id)
        operation.refuse_busy(session.stack)
        for name, ids in saved.items():
            resource = session.resources.find(name)
            if resource is not None and isinstance(kind := session.type_of(resource), SavesState):
                kind.delete_saved(session.context, resource, ids)
    stacks.delete_snapshot(tx, snapshot.id)


def restore_snapshot(tx: Tx, engine: Engine, stack_id: str, snapshot: Snapshot) -> Stack:
    """Update the stack to the snapshot's state. Raises ActionInProgress, NotSupported."""
    if snapshot.status is not Status.COMPLETE:
        raise NotSupported(f"Snapshot {snapshot.id} is {snapshot.status}: only complete ones can be restored.")
    stack = stacks.get(tx, stack_id, for_update=True)
    operation.refuse_busy(stack)
    source = convert(snapshot.data["source"], Source)
    resolved = _with_saved(engine, prepare_again(engine, stack, source, engine.budget(tx)), snapshot)
    return operations.update(tx, engine, resolved, Options(), action=Action.RESTORE)


def _with_saved(engine: Engine, resolved: ResolvedStack, snapshot: Snapshot) -> ResolvedStack:
    """Return the stack with the properties that let clouds restore what they saved."""
    definitions = dict(resolved.definitions)
    for name, saved in (snapshot.data.get(SAVED) or {}).items():
        definition = definitions.get(name)
        kind = engine.type(definition["type"]) if definition is not None else None
        if definition is not None and isinstance(kind, SavesState) and isinstance(definition["properties"], Mapping):
            restored = kind.restored(saved)
            definitions[name] = {**definition, "properties": {**definition["properties"], **restored}}
    return replace(resolved, definitions=definitions)
