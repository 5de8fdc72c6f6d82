"""CloudFormation actions that create, change, delete and validate stacks."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from stoker.http import params
from stoker.http.cfn.reads import arn
from stoker.http.cfn.request import CfnRequest
from stoker.http.cfn.serialize import Refused
from stoker.http.heat import stack_lookup, stack_requests
from stoker.model.errors import Invalid
from stoker.model.stack import Stack
from stoker.stacks import operations
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, StackRequest, prepare
from stoker.stacks.templates.validation import describe_template
from stoker.store.tx import Tx

_PARAMETER = re.compile(r"Parameters\.member\.(\d+)\.ParameterKey")
_ROLLS_BACK = {"DO_NOTHING": False, "ROLLBACK": True, "DELETE": True}


def create_stack(request: CfnRequest) -> Any:
    context = request.context
    identity = Identity(str(uuid4()), stack_requests.name(request.one("StackName")), request.project)
    resolved = prepare(context.app.engine, _stack_request(request), identity)
    options = _options(request)
    stack = context.app.store.write(
        lambda tx: operations.create(
            tx, context.app.engine, resolved, options, identity, username=context.user.user_name
        )
    )
    return {"StackId": arn(stack)}


def update_stack(request: CfnRequest) -> Any:
    context = request.context
    stack = _live(request)
    resolved = prepare(context.app.engine, _stack_request(request), Identity(stack.id, stack.name, stack.project_id))
    options = _options(request)
    context.app.store.write(lambda tx: operations.update(tx, context.app.engine, stack.id, resolved, options))
    return {"StackId": arn(stack)}


def cancel_update_stack(request: CfnRequest) -> Any:
    """Cancel the running update and roll the stack back."""
    stack, engine = _live(request), request.context.app.engine
    request.context.app.store.write(lambda tx: operations.cancel(tx, engine, stack.id, rollback=True))
    return {}


def delete_stack(request: CfnRequest) -> Any:
    stack, engine = _live(request), request.context.app.engine
    request.context.app.store.write(lambda tx: operations.delete(tx, engine, stack.id))
    return ""


def validate_template(request: CfnRequest) -> Any:
    """Return the template's parameters, or the error message if the template is invalid."""
    try:
        description = describe_template(request.context.app.engine, _stack_request(request), show_nested=False)
    except Invalid as error:
        return error.message  # the same response as Heat's
    parameters = [
        {
            "ParameterKey": name,
            "DefaultValue": parameter.get("Default", ""),
            "Description": parameter.get("Description", ""),
            "NoEcho": parameter.get("NoEcho", "false"),
        }
        for name, parameter in description["Parameters"].items()
    ]
    return {"Description": description["Description"], "Parameters": parameters}


def _live(request: CfnRequest) -> Stack:
    with request.context.app.store.read() as tx:
        return _own(tx, request)


def _own(tx: Tx, request: CfnRequest) -> Stack:
    stack = request.stack(tx)
    stack_lookup.refuse_nested(stack)
    return stack


def _stack_request(request: CfnRequest) -> StackRequest:
    template = request.params.get("TemplateBody")
    if template is None:
        if "TemplateUrl" in request.params:
            raise Invalid("TemplateUrl is not supported: send the template itself, as TemplateBody")
        raise Refused(400, "MissingParameter", "TemplateBody is missing")
    keys = (match for name in request.params if (match := _PARAMETER.fullmatch(name)))
    parameters = {
        request.params[match[0]]: request.params.get(f"Parameters.member.{match[1]}.ParameterValue", "")
        for match in keys
    }
    return StackRequest(template=template, parameters=parameters)


def _options(request: CfnRequest) -> Options:
    on_failure, disable = request.params.get("OnFailure"), request.params.get("DisableRollback")
    if on_failure is not None and disable is not None:
        raise Refused(400, "InvalidParameterCombination", "DisableRollback and OnFailure may not be used together")
    if on_failure is not None and on_failure not in _ROLLS_BACK:
        raise Invalid(f"OnFailure must be one of {', '.join(_ROLLS_BACK)}")
    disabled = not _ROLLS_BACK[on_failure] if on_failure else params.flag(disable, "DisableRollback")
    return Options(
        timeout_mins=params.whole(request.params.get("TimeoutInMinutes") or None, "TimeoutInMinutes", least=1),
        disable_rollback=disabled,
    )
