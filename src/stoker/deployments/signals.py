"""The effect of a signal on a deployment. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stoker.model.deployment import Deployment, Signal
from stoker.model.status import Status

#: Value of a result: id of the derived config that was run.
RUN = "deploy_config_id"
ALWAYS = ("deploy_stdout", "deploy_stderr", "deploy_status_code")
#: Stoker's own: the agent's reason for a missing regular result (interrupted, timed out, no hook).
REASON = "deploy_status_reason"
#: IN_PROGRESS, COMPLETE or FAILED, from a hook that knows ``deploy_status_aware``. It overrides all other values.
STATUS = "deploy_status"


def resolve_signal(deployment: Deployment, outputs: Iterable[Mapping[str, Any]], signal: Signal) -> Deployment:
    """
    Return the deployment after ``signal``.

    A deployment that has ended is returned unchanged: late and repeated signals are normal. ``outputs`` are those that
    the config declares. Values that are neither declared nor ``deploy_*`` are dropped. A non-zero exit code or a value
    in an error output fails the deployment, unless the signal contains an explicit status.
    """
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    values = signal.values
    kept = {name: values.get(name) for name in ALWAYS}
    reasons = [str(values[REASON])] if values.get(REASON) else []
    code = values.get("deploy_status_code")
    if code and str(code) != "0":
        reasons.append(f"deploy_status_code : Deployment exited with non-zero status code: {code}")
    for output in outputs:
        name = output["name"]
        if name not in values:
            continue
        kept[name] = values[name]
        # Heat fails if the key is present. Here an empty error output is not an error.
        if output.get("error_output") and values[name] not in (None, ""):
            reasons.append(f"{name} : {values[name]}")
    status = Status.FAILED if reasons else Status.COMPLETE
    if values.get(STATUS) in (Status.COMPLETE, Status.FAILED):
        status = Status(values[STATUS])
        if status is Status.COMPLETE:
            reasons = reasons[:1] if values.get(REASON) else []
    words = ", ".join(reasons) or ("Outputs received" if status is Status.COMPLETE else "The agent says that it failed")
    return replace(
        deployment,
        status=status,
        # PostgreSQL refuses NUL in a text column such as the reason; outputs are JSON, which may contain it.
        status_reason=words.replace("\0", ""),
        output_values=kept,
    )
