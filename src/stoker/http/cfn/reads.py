"""What CloudFormation's API tells of stacks and their resources."""

from __future__ import annotations

import json
from typing import Any

from stoker.hot import Parameters
from stoker.http.cfn.asking import Asking
from stoker.http.cfn.serialize import Refused
from stoker.http.heat.shapes import time
from stoker.model.arn import Arn
from stoker.model.errors import EntityNotFound, Forbidden
from stoker.model.stack import Event, Resource, Stack
from stoker.stacks import outputs
from stoker.stacks.engine import Engine
from stoker.stacks.looking import look_ahead
from stoker.stacks.signals import addressed
from stoker.stacks.transition import Transition
from stoker.store import events, resources, stacks
from stoker.store.stack_lists import Filter, listed
from stoker.store.tx import Tx


def list_stacks(asking: Asking) -> Any:
    with asking.call.services.store.read() as tx:
        found = listed(tx, asking.project, Filter(hidden_tags=asking.call.services.settings.hidden_tags))
    return {
        "StackSummaries": [
            {
                **_named(each),
                "CreationTime": time(each.created_at),
                "LastUpdatedTime": time(each.updated_at) or "",
                "DeletionTime": time(each.deleted_at) or "",
                "TemplateDescription": each.description,
                **_status(each),
            }
            for each in found
        ]
    }


def describe_stacks(asking: Asking) -> Any:
    services = asking.call.services
    with services.store.read() as tx:
        named = asking.params.get("StackName")
        found = [asking.stack(tx)] if named else listed(tx, asking.project, Filter())
        look_ahead(tx, [each.root_id for each in found])
        shown = [_described(each, outputs.all_values(tx, services.engine, each)) for each in found]
    return {"Stacks": shown}


def get_template(asking: Asking) -> Any:
    with asking.call.services.store.read() as tx:
        return {"TemplateBody": dict(stacks.source(tx, asking.stack(tx).id).template)}


def describe_stack_events(asking: Asking) -> Any:
    with asking.call.services.store.read() as tx:
        stack = asking.stack(tx)
        found = events.listed(tx, [stack.id], equal={}, limit=None, marker=None, descending=True)
    return {"StackEvents": [_event(stack, each) for each in found]}


def describe_stack_resource(asking: Asking) -> Any:
    """What os-collect-config polls; one that stands for a resource sees that one only."""
    name = asking.one("LogicalResourceId")
    services = asking.call.services
    with services.store.read() as tx:
        stack = asking.stack(tx)
        found = addressed(tx, stack, name, asking.principal.resource_id)
        if found is None and asking.principal.resource_id is not None:
            raise Forbidden("You are not authorized to complete this action.")
        if found is None:
            raise EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")
        return {"StackResourceDetail": described(tx, services.engine, stack, found)}


def described(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> dict[str, Any]:
    transition = Transition(tx, engine, stack)
    live = transition.type_of(resource).live_metadata(transition.context, resource)
    return {
        **_resource(resource),
        "Description": resource.definition.get("description") or "",
        "LastUpdatedTimestamp": time(resource.updated_at or resource.created_at),
        "Metadata": {**resource.metadata, **live},
        **_named(stack),
    }


def describe_stack_resources(asking: Asking) -> Any:
    """By the stack's name, or by what one of its resources is."""
    physical = asking.params.get("PhysicalResourceId")
    if (physical is None) == ("StackName" not in asking.params):
        raise Refused(400, "InvalidParameterCombination", "give StackName or PhysicalResourceId")
    with asking.call.services.store.read() as tx:
        stack = asking.stack(tx) if physical is None else _of_physical(asking, tx, physical)
        found = [each for each in resources.of_stack(tx, stack.id) if each.current]
    wanted = asking.params.get("LogicalResourceId")
    return {
        "StackResources": [
            {
                **_resource(each),
                **_named(stack),
                "Description": each.definition.get("description") or "",
                "Timestamp": time(each.updated_at or each.created_at),
            }
            for each in found
            if wanted in (None, each.name)
        ]
    }


def list_stack_resources(asking: Asking) -> Any:
    with asking.call.services.store.read() as tx:
        stack = asking.stack(tx)
        found = [each for each in resources.of_stack(tx, stack.id) if each.current]
    return {
        "StackResourceSummaries": [
            {**_resource(each), "LastUpdatedTimestamp": time(each.updated_at or each.created_at)} for each in found
        ]
    }


def estimate_template_cost(_asking: Asking) -> Any:
    return {"Url": "http://en.wikipedia.org/wiki/Gratis"}


def arn(stack: Stack) -> str:
    return str(Arn(stack.project_id, stack.name, stack.id))


def _of_physical(asking: Asking, tx: Tx, physical: str) -> Stack:
    found = resources.anywhere(tx, asking.project, physical)
    stack = stacks.find(tx, found.stack_id) if found else None
    if stack is None:
        raise EntityNotFound.of("Resource", physical)
    return stack


def _named(stack: Stack) -> dict[str, Any]:
    return {"StackId": arn(stack), "StackName": stack.name}


def _status(stack: Stack) -> dict[str, Any]:
    return {"StackStatus": f"{stack.action}_{stack.status}", "StackStatusReason": stack.reason}


def _described(stack: Stack, values: list[dict[str, Any]]) -> dict[str, Any]:
    shown = Parameters.from_json(stack.parameters).shown()
    said = {
        "Capabilities": [],
        "CreationTime": time(stack.created_at),
        "Description": stack.description,
        "DisableRollback": stack.disable_rollback,
        "NotificationARNs": [],
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in shown.items()],
        **_named(stack),
        **_status(stack),
        "TimeoutInMinutes": "" if stack.timeout_mins is None else stack.timeout_mins,
        "Outputs": [
            {
                "Description": each["description"],
                "OutputKey": each["output_key"].replace(":", "."),
                "OutputValue": each["output_value"],
            }
            for each in values
        ],
    }
    if stack.updated_at is not None:
        said["LastUpdatedTime"] = time(stack.updated_at)
    return said


def _resource(resource: Resource) -> dict[str, Any]:
    return {
        "LogicalResourceId": resource.name,
        "PhysicalResourceId": resource.physical_id or "",
        "ResourceStatus": f"{resource.action}_{resource.status}",
        "ResourceStatusReason": resource.reason,
        "ResourceType": resource.type,
    }


def _event(stack: Stack, event: Event) -> dict[str, Any]:
    return {
        "EventId": event.id,
        "LogicalResourceId": event.resource_name,
        "PhysicalResourceId": event.physical_id or "",
        "ResourceProperties": json.dumps(event.properties),
        "ResourceStatus": f"{event.action}_{event.status}",
        "ResourceStatusReason": event.reason,
        "ResourceType": event.resource_type,
        "Timestamp": time(event.at),
        **_named(stack),
    }
