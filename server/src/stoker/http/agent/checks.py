"""/agent/v1/checks/{deployment_id}: an agent reports the result of a check."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from stoker.deployments import drift
from stoker.deployments.drift import CheckReport
from stoker.http.contracts import operation
from stoker.http.fields import LAST, Body, LongText, RequiredShortText, Unchecked
from stoker.http.heat.runs import RunChange
from stoker.http.request import RequestContext
from stoker.model.check import CheckState
from stoker.store.tx import Tx


class ReportedChanges(Unchecked):
    """The differences as the hook reported them, which ``deployments.signals.read_changes`` checks."""

    schema = list[RunChange]


class CheckResult(Body):
    """``config_id`` is the derived config that was checked, ``requested`` the request that the report answers."""

    config_id: RequiredShortText
    state: CheckState
    reason: LongText = ""
    changes: ReportedChanges | None = None
    requested: Annotated[int, Meta(ge=0, le=LAST)] | None = None


@operation(204)
def report(request: RequestContext, tx: Tx, body: CheckResult) -> None:
    """Record the result of a check. A report about an earlier run of the deployment changes nothing."""
    result = CheckReport(
        deployment_id=request.path["deployment_id"],
        config_id=body.config_id,
        state=body.state,
        reason=body.reason,
        changes=body.changes,
        requested=body.requested,
    )
    drift.apply_report(tx, request.app.engine.env, request.server, result)
