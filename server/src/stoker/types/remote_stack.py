"""
OS::Heat::Stack: an independent stack, on this site or on a remote Heat, with the lifetime of the resource.

The resource's ``data`` holds the requested action. A job sends the request and polls the stack until the action ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog
from msgspec.structs import replace

from stoker.backends.remote_heat import Answer
from stoker.failures import ServiceRejected, ServiceUnavailable, backoff
from stoker.hot import UNKNOWN, Environment
from stoker.model.deployment import Owner, Settled
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Action, Resource, Stack
from stoker.resources.base import (
    DONE,
    Context,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Property
from stoker.resources.roles import RunsRemoteStack
from stoker.stacks.engine import Engine
from stoker.stacks.engine.progress import commit, lock_resource
from stoker.store import resources, stacks
from stoker.store.open import Store
from stoker.store.tx import Tx

#: Kind of the job that performs the action, keyed by the resource's id; its arguments: ``resource_id`` and ``task``.
REMOTE = "stack.remote"
#: Pause between two polls in seconds: the first and the longest.
_FIRST, _LONGEST = 0.2, 10.0
_log = structlog.get_logger("stoker.stacks")
_ACTIONS = {"SUSPEND": "suspend", "RESUME": "resume", "CHECK": "check"}
_CONTEXT = {
    "region_name": Property(
        kind="string", longest=255, description="Region of the Heat to ask; its name is in remote_heats."
    ),
    "credential_secret_id": Property(kind="string", description="Refused: there is no Barbican to look it up in."),
    "ca_cert": Property(kind="string", description="Refused: the site's entry of clouds.yaml says what to trust."),
    "insecure": Property(kind="boolean", default=False, description="Refused when true, for the same reason."),
}


def _task(context: Context, resource: Resource, action: Action, properties: Properties) -> Outcome:
    region = (properties.get("context") or {}).get("region_name")
    if (problem := context.env.remote_heats.problem(region)) is not None:
        raise ResourceFailure(f"{problem}. {context.env.remote_heats.remedy()}")
    task = str(uuid4())
    context.env.work.defer_once(context.tx, REMOTE, resource.id, {"resource_id": resource.id, "task": task})
    wanted = {
        "task": task,
        "action": action.value,
        "region": region,
        "name": resource.data.get("name") or physical_name(context, resource),
        "body": {
            "template": properties.get("template"),
            "parameters": properties.get("parameters") or {},
            "timeout_mins": properties.get("timeout"),
            "disable_rollback": True,
        },
    }
    return Outcome(False, data={**resource.data, "name": wanted["name"], "wanted": wanted, "ended": None})


class RemoteStack(RunsRemoteStack, ResourceType):
    name = "OS::Heat::Stack"
    description = "A stack of its own, here or at another Heat."
    properties = {
        "template": Property(kind="string", required=True, update_allowed=True, description="The stack's template."),
        "parameters": Property(kind="map", update_allowed=True, description="Its parameters."),
        "timeout": Property(kind="integer", minimum=1, update_allowed=True, description="Minutes it may take."),
        "context": Property(kind="map", update_allowed=True, schema=_CONTEXT, description="Which Heat, and how."),
    }
    attributes = {"stack_name": "The stack's name.", "outputs": "Its outputs, by name."}
    acts_for_owner = True
    actions = (Action.SUSPEND, Action.RESUME, Action.CHECK)

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return _task(context, resource, Action.CREATE, properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Update the stack. Raises Replace if the region changes, because the new region needs a new stack."""
        before, after = (
            (values.get("context") or {}).get("region_name") for values in (resource.properties, properties)
        )
        if before != after or resource.physical_id is None:
            raise Replace(resource.name)
        return _task(context, resource, Action.UPDATE, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Delete the stack, also if it may exist although no response confirmed its creation."""
        return _task(context, resource, Action.DELETE, resource.properties) if resource.data.get("name") else DONE

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        return _task(context, resource, action, resource.properties) if resource.physical_id else DONE

    def check(self, context: Context, resource: Resource) -> Outcome:
        return Outcome(resource.data.get("ended") == (resource.data.get("wanted") or {}).get("task"))

    def cancel(self, context: Context, resource: Resource) -> None:
        context.env.work.cancel(context.tx, REMOTE, resource.id)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return resource.data.get("name") if name == "stack_name" else resource.data.get("outputs") or {}

    def validate(self, properties: Properties) -> None:
        remote = properties["context"]
        if not isinstance(remote, Mapping):
            return
        for name in ("credential_secret_id", "ca_cert", "insecure"):
            if remote.get(name) not in (None, False, UNKNOWN):
                raise StackValidationFailed(f"context.{name}: {_CONTEXT[name].description}")


class RemoteStacks:
    """Operates stacks at other Heats. While a Heat is unreachable, the job repeats its request."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine

    def go_on(self, args: Mapping[str, Any]) -> None:
        """Job: send the request of a resource, or poll the remote stack, and report its end to the resource."""
        with self._store.read() as tx:
            resource = resources.find(tx, args["resource_id"])
            stack = stacks.find(tx, resource.stack_id) if resource else None
            inputs = _inputs(tx, stack) if stack is not None and not args.get("sent") else {}
        wanted = resource.data.get("wanted") if resource else None
        if resource is None or stack is None or not wanted or wanted["task"] != args["task"]:
            return  # superseded or deleted
        try:
            request = {**wanted, "body": {**wanted["body"], **inputs}}
            ended = self._poll(resource, request, stack, sent=bool(args.get("sent")))
        except ServiceRejected as error:
            self._tell(resource, wanted, {}, str(error))
            return
        except ServiceUnavailable as error:
            _log.warning("remote_stack.unavailable", resource_id=resource.id, error=str(error))
            self._again(resource, args, sent=bool(args.get("sent")))
            return
        if ended is None:
            self._again(resource, args, sent=True)
        else:
            self._tell(resource, wanted, *ended)

    def _poll(
        self, resource: Resource, wanted: Mapping[str, Any], stack: Stack, *, sent: bool
    ) -> tuple[Mapping[str, Any], str | None] | None:
        """Return the values to store and the failure, if any; None: the operation continues. Raises ServiceRejected."""

        def ask(verb: str, path: str, body: Any = None) -> Answer:
            return self._engine.env.remote_heats.ask(
                wanted["region"], stack.project_id, stack.root_id, verb, path, body
            )

        answer = ask("GET", f"/stacks/{wanted['name']}")
        action = wanted["action"]
        if answer.status == 404:
            if action == "DELETE":
                return {}, None
            if action != "CREATE" or sent:
                raise ServiceRejected(f"the stack {wanted['name']} is not there any more", answer.status)
            _check_status(ask("POST", "/stacks", {"stack_name": wanted["name"], **wanted["body"]}), 201)
            return None
        _check_status(answer, 200)
        remote = answer.body["stack"]
        path = f"/stacks/{wanted['name']}/{remote['id']}"
        if not sent and action != "CREATE":
            self._send(ask, action, path, wanted["body"])
            return None
        status = remote["stack_status"]
        if status.endswith("_IN_PROGRESS") or not status.startswith(action):
            return None  # a Heat may report the start of the action with a delay
        if status.endswith("_FAILED"):
            return {"physical_id": remote["id"]}, f"{status}: {remote['stack_status_reason']}"
        outputs = {output["output_key"]: output.get("output_value") for output in remote.get("outputs", ())}
        return {"physical_id": remote["id"], "outputs": outputs}, None

    @staticmethod
    def _send(ask: Any, action: str, path: str, body: Mapping[str, Any]) -> None:
        if action == "UPDATE":
            _check_status(ask("PUT", path, body), 202)
        elif action == "DELETE":
            _check_status(ask("DELETE", path), 204, 404)
        else:
            _check_status(ask("POST", f"{path}/actions", {_ACTIONS[action]: None}), 200, 201)

    def _again(self, resource: Resource, args: Mapping[str, Any], *, sent: bool) -> None:
        polls = int(args.get("polls", 0))
        pause = backoff(polls, first=_FIRST, longest=_LONGEST)
        later = {**args, "sent": sent, "polls": polls + 1}
        work = self._engine.env.work
        self._store.write(lambda tx: work.defer(tx, REMOTE, resource.id, later, at=tx.now + timedelta(seconds=pause)))

    def _tell(
        self, resource: Resource, wanted: Mapping[str, Any], kept: Mapping[str, Any], failure: str | None
    ) -> None:
        def do(tx: Tx) -> None:
            locked = lock_resource(tx, self._engine, resource.id, resource.stack_id)
            if locked is None or (locked[1].data.get("wanted") or {}).get("task") != wanted["task"]:
                return
            session, now = locked
            data = {**now.data, "ended": wanted["task"], "outputs": kept.get("outputs", now.data.get("outputs"))}
            session.resources.change(replace(now, data=data, physical_id=kept.get("physical_id", now.physical_id)))
            commit(session)
            tx.wake(Owner.resource(now.id), Settled(failure))

        self._store.write(do)


def _inputs(tx: Tx, stack: Stack) -> Mapping[str, Any]:
    """Return the files and the environment of a stack, with which its remote stacks are created and updated."""
    environment = Environment.parse(stacks.source(tx, stack.id).environment)
    inherited = replace(environment, parameters={}, parameter_merge_strategies={}).to_json()
    return {"files": dict(stacks.source(tx, stack.root_id).files), "environment": inherited}


def _check_status(answer: Answer, *statuses: int) -> None:
    if answer.status not in statuses:
        message = answer.body.get("error", {}).get("message") if isinstance(answer.body, dict) else None
        sentence = f"the other Heat answered {answer.status}: {message or 'nothing more'}"
        raise ServiceRejected(sentence, answer.status)
