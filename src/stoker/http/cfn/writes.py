"""What CloudFormation's API does to stacks."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from stoker.http import reading
from stoker.http.cfn.asking import Asking
from stoker.http.cfn.reads import arn
from stoker.http.cfn.serialize import Refused
from stoker.http.heat import finding, handing
from stoker.model.errors import Invalid
from stoker.model.stack import Stack
from stoker.stacks import operations
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Handed, Identity, prepare
from stoker.stacks.validation import validated
from stoker.store.tx import Tx

_PARAMETER = re.compile(r"Parameters\.member\.(\d+)\.ParameterKey")
_ROLLS_BACK = {"DO_NOTHING": False, "ROLLBACK": True, "DELETE": True}


def create_stack(asking: Asking) -> Any:
    call = asking.call
    identity = Identity(str(uuid4()), handing.name(asking.one("StackName")), asking.project)
    prepared = prepare(call.services.engine, _handed(asking), identity)
    options = _options(asking)
    made = call.services.store.write(
        lambda tx: operations.create(
            tx, call.services.engine, prepared, options, identity, username=asking.principal.user_name
        )
    )
    return {"StackId": arn(made)}


def update_stack(asking: Asking) -> Any:
    call = asking.call
    stack = _live(asking)
    prepared = prepare(call.services.engine, _handed(asking), Identity(stack.id, stack.name, stack.project_id))
    options = _options(asking)
    call.services.store.write(lambda tx: operations.update(tx, call.services.engine, stack.id, prepared, options))
    return {"StackId": arn(stack)}


def cancel_update_stack(asking: Asking) -> Any:
    stack, engine = _live(asking), asking.call.services.engine
    asking.call.services.store.write(lambda tx: operations.cancel(tx, engine, stack.id, rollback=True))
    return {}


def delete_stack(asking: Asking) -> Any:
    stack, engine = _live(asking), asking.call.services.engine
    asking.call.services.store.write(lambda tx: operations.delete(tx, engine, stack.id))
    return ""


def validate_template(asking: Asking) -> Any:
    try:
        shown = validated(asking.call.services.engine, _handed(asking), show_nested=False)
    except Invalid as error:
        return error.message  # Heat answers so too
    parameters = [
        {
            "ParameterKey": name,
            "DefaultValue": each.get("Default", ""),
            "Description": each.get("Description", ""),
            "NoEcho": each.get("NoEcho", "false"),
        }
        for name, each in shown["Parameters"].items()
    ]
    return {"Description": shown["Description"], "Parameters": parameters}


def _live(asking: Asking) -> Stack:
    with asking.call.services.store.read() as tx:
        return _own(tx, asking)


def _own(tx: Tx, asking: Asking) -> Stack:
    found = asking.stack(tx)
    finding.refuse_nested(found)
    return found


def _handed(asking: Asking) -> Handed:
    template = asking.params.get("TemplateBody")
    if template is None:
        if "TemplateUrl" in asking.params:
            raise Invalid("TemplateUrl is not supported: send the template itself, as TemplateBody")
        raise Refused(400, "MissingParameter", "TemplateBody is missing")
    keys = (found for name in asking.params if (found := _PARAMETER.fullmatch(name)))
    parameters = {
        asking.params[found[0]]: asking.params.get(f"Parameters.member.{found[1]}.ParameterValue", "") for found in keys
    }
    return Handed(template=template, parameters=parameters)


def _options(asking: Asking) -> Options:
    on_failure, disable = asking.params.get("OnFailure"), asking.params.get("DisableRollback")
    if on_failure is not None and disable is not None:
        raise Refused(400, "InvalidParameterCombination", "DisableRollback and OnFailure may not be used together")
    if on_failure is not None and on_failure not in _ROLLS_BACK:
        raise Invalid(f"OnFailure must be one of {', '.join(_ROLLS_BACK)}")
    disabled = not _ROLLS_BACK[on_failure] if on_failure else reading.flag(disable, "DisableRollback")
    return Options(
        timeout_mins=reading.whole(asking.params.get("TimeoutInMinutes") or None, "TimeoutInMinutes", least=1),
        disable_rollback=disabled,
    )
