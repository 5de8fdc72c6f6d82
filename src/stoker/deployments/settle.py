"""What a signal does to a deployment. Pure: values in, value out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stoker.model.deployment import Deployment, Signal
from stoker.model.status import Status

ALWAYS = ("deploy_stdout", "deploy_stderr", "deploy_status_code")
#: Ours: a sentence of the agent's on why there is no ordinary result (interrupted, timed out, no hook).
REASON = "deploy_status_reason"
#: IN_PROGRESS, COMPLETE or FAILED, of a hook that knows ``deploy_status_aware``: it decides, whatever else is said.
STATUS = "deploy_status"


def settle(deployment: Deployment, outputs: Iterable[Mapping[str, Any]], signal: Signal) -> Deployment:
    """
    The deployment after ``signal``; itself when it had ended before: late and repeated signals are normal.

    ``outputs`` are the config's declared ones. What is neither declared nor ``deploy_*`` is dropped. A non-zero
    exit code or a value in an error output fails the deployment, unless the signal says itself what became of it.
    """
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    said = signal.values
    kept = {name: said.get(name) for name in ALWAYS}
    reasons = [str(said[REASON])] if said.get(REASON) else []
    code = said.get("deploy_status_code")
    if code and str(code) != "0":
        reasons.append(f"deploy_status_code : Deployment exited with non-zero status code: {code}")
    for output in outputs:
        name = output["name"]
        if name not in said:
            continue
        kept[name] = said[name]
        # Heat fails on the mere presence of the key; an error output that says nothing is no error here.
        if output.get("error_output") and said[name] not in (None, ""):
            reasons.append(f"{name} : {said[name]}")
    status = Status.FAILED if reasons else Status.COMPLETE
    if said.get(STATUS) in (Status.COMPLETE, Status.FAILED):
        status = Status(said[STATUS])
        if status is Status.COMPLETE:
            reasons = reasons[:1] if said.get(REASON) else []
    words = ", ".join(reasons) or ("Outputs received" if status is Status.COMPLETE else "The agent says that it failed")
    return replace(
        deployment,
        status=status,
        # A reason is a plain column, where PostgreSQL takes no NUL; outputs are JSON, and keep theirs.
        status_reason=words.replace("\0", ""),
        output_values=kept,
    )
