"""
Authorization of runs: applies the server's policy to each run and records the decision in the audit log.

Every run of a deployment passes the authorizer before it starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from msgspec.structs import replace

from stoker.hot.words import clip
from stoker.model.audit import Decision, Outcome
from stoker.model.config import UNGROUPED
from stoker.model.delivered_hook import DeliveredHook
from stoker.model.deployment import WINDOW
from stoker.model.errors import DeploymentRefused
from stoker.model.server import OWN_AGENT
from stoker.policy import holds, rules, windows
from stoker.policy.holds import load_policy
from stoker.policy.rules import PROJECT, SITE_DEFAULTS, Policy, SiteDefaults, Target, Tree
from stoker.store import audit, server_policies, stacks
from stoker.store.open import Store
from stoker.store.server_policies import Governed
from stoker.store.tx import Tx
from stoker.work import Work

_log = structlog.get_logger("stoker.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A run that is about to start."""

    project_id: str
    server_id: str
    #: Empty if the deployment does not exist yet.
    deployment_id: str
    action: str | None
    #: Group of the config.
    group: str | None = None
    #: The hook that the agent has to fetch; None: the hook is installed.
    hook: DeliveredHook | None = None
    stack_id: str | None = None
    trigger_id: str | None = None
    #: The run changes nothing on the server, so it waits for no maintenance window.
    is_preview: bool = False
    #: Name of the user; None: an action of a stack starts the run.
    actor: str | None = None
    #: Names for the audit log.
    config_name: str | None = None
    stack_name: str | None = None
    resource_name: str | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """The conditions on which a run starts."""

    #: True if the server belongs to another project and its policy admits the run.
    admitted: bool = False
    #: WINDOW if the run waits for a maintenance window; ``reason`` names the window. None if the run may start now.
    held_by: str | None = None
    reason: str | None = None


_FREE = Admission()


@dataclass(frozen=True, slots=True)
class DeploymentAuthorizer:
    """Applies servers' policies to runs."""

    work: Work
    #: The rules for servers whose policy does not set them.
    site: SiteDefaults = SITE_DEFAULTS

    def authorize(self, tx: Tx, request: AuthorizationRequest) -> Admission:
        """
        Return the conditions on which a run starts.

        Raises DeploymentRefused if the server's policy denies the run. The transaction adds the run to the audit log.
        Only one query runs if the server is unknown, or if neither the server nor the site has a policy.
        """
        server = server_policies.server(tx, request.server_id, staying=True)
        is_own = server is not None and server.project_id == request.project_id
        if server is None or self._is_free(server, request.hook):
            _record_free(tx, request, server.name if server is not None and is_own else None)
            return _FREE if is_own else _without_server(request)
        policy = load_policy(server.policy)
        decision, stack = self._decide(tx, server, policy, request)
        record(tx, decision)
        if decision.outcome is Outcome.REFUSED:
            raise DeploymentRefused(decision.reason, decision)
        admitted = rules.admits(policy, _target(request.server_id, server), project_id=request.project_id, stack=stack)
        if not is_own and not admitted:
            return _without_server(request)
        return self._check_windows(tx, server, policy, request, admitted=admitted)

    def authorize_cleanup(self, tx: Tx, request: AuthorizationRequest, *, admitted: bool) -> Admission:
        """
        Return the conditions for the last run of an existing deployment, which cleans up.

        No policy denies this run, but maintenance windows apply.
        """
        server = server_policies.server(tx, request.server_id, staying=True)
        is_own = server is not None and server.project_id == request.project_id
        _record_free(tx, request, server.name if server is not None and is_own else None)
        if server is None or server.policy is None:
            return _FREE if not admitted else Admission(admitted=True)
        return self._check_windows(tx, server, load_policy(server.policy), request, admitted=admitted)

    def precheck(
        self,
        tx: Tx,
        *,
        server_id: str,
        project_id: str,
        stack: Tree,
        group: str | None,
        hook: DeliveredHook | None,
        actor: str,
        standing: bool,
    ) -> None:
        """
        Raise DeploymentRefused for a run that ``authorize`` would deny, before a stack is created or updated.

        ``group`` is None if it is not known yet, ``hook`` if there is none or it is not known yet. ``standing``: the
        stack may get a resource that represents the server.
        """
        server = server_policies.server(tx, server_id)
        if server is None or self._is_free(server, hook):
            return
        policy, target = load_policy(server.policy), _target(server_id, server, tx)
        if standing and not target.owned and project_id == server.project_id:
            target = Target(
                id=target.id, name=target.name, project_id=target.project_id, trees=target.trees | {stack.id}
            )
        if group is None:
            policy, hook = Policy(allow=policy.allow), None
        reason = rules.decide(
            policy, target, project_id=project_id, stack=stack, group=group or "", hook=hook, site=self.site
        )
        if reason is not None:
            decision = Decision(
                project_id=server.project_id,
                actor=actor,
                action="validate",
                outcome=Outcome.REFUSED,
                reason=reason,
                server_id=server_id,
                server_name=server.name,
                stack_id=stack.id,
                stack_name=stack.name,
            )
            raise DeploymentRefused(reason, decision)

    def check(self, tx: Tx, request: AuthorizationRequest) -> DeploymentRefused | None:
        """Return the error that ``authorize`` would raise, or None. Writes nothing."""
        server = server_policies.server(tx, request.server_id)
        if server is None or self._is_free(server, request.hook):
            return None
        decision, _ = self._decide(tx, server, load_policy(server.policy), request)
        return None if decision.outcome is Outcome.ALLOWED else DeploymentRefused(decision.reason, decision)

    def _is_free(self, server: Governed, hook: DeliveredHook | None) -> bool:
        """Return whether no policy concerns a run on the server: neither its own nor the site's."""
        return server.policy is None and self.site.allow == PROJECT and hook is None

    def _decide(
        self, tx: Tx, server: Governed, policy: Policy, request: AuthorizationRequest
    ) -> tuple[Decision, Tree | None]:
        """Return the decision, and the root of the requesting stack, if there is one."""
        stack, actor = _requester(tx, request)
        target = _target(request.server_id, server, tx)
        reason = rules.decide(
            policy,
            target,
            project_id=request.project_id,
            stack=stack,
            group=request.group or UNGROUPED,
            hook=request.hook,
            site=self.site,
        )
        decision = replace(
            _admitted(request, server.name),
            project_id=server.project_id,
            actor=actor,
            outcome=Outcome.ALLOWED if reason is None else Outcome.REFUSED,
            reason=reason or "The server's policy lets it in.",
        )
        return decision, stack

    def _check_windows(
        self, tx: Tx, server: Governed, policy: Policy, request: AuthorizationRequest, *, admitted: bool
    ) -> Admission:
        runs = admitted or request.project_id == server.project_id
        if not policy.windows or not runs or request.is_preview:
            return Admission(admitted=admitted)
        opening = windows.find_opening(policy.windows, tx.now)
        holds.schedule_check(tx, self.work, request.server_id, opening or windows.find_closing(policy.windows, tx.now))
        if opening is None:
            return Admission(admitted=admitted)
        return Admission(admitted, WINDOW, holds.waiting_reason(server.name, opening))


def _without_server(request: AuthorizationRequest) -> Admission:
    """
    Admit a run that will not be delivered, because the project has no such server.

    Another project may own the server, which is not disclosed. Or an agent of OpenStack may poll with the id of a
    server that Stoker does not know.
    """
    return Admission(reason=f"Waiting for an agent: this project has no server with the id {clip(request.server_id)}")


def _admitted(request: AuthorizationRequest, server_name: str | None) -> Decision:
    return Decision(
        project_id=request.project_id,
        actor=request.actor or (f"the stack {request.stack_name}" if request.stack_name else None),
        action=f"run {request.action or ''}".strip(),
        outcome=Outcome.ALLOWED,
        reason="",
        server_id=request.server_id,
        deployment_id=request.deployment_id or None,
        stack_id=request.stack_id,
        server_name=server_name,
        stack_name=request.stack_name,
        resource_name=request.resource_name,
        config_name=request.config_name,
    )


def _record_free(tx: Tx, request: AuthorizationRequest, server_name: str | None) -> None:
    """Add a run that no policy concerns to the audit log. Previews change nothing, and may be frequent."""
    if not request.is_preview:
        audit.add(tx, _admitted(request, server_name))


def record(tx: Tx, decision: Decision) -> None:
    """Write a decision to the audit log, with the server's name, and after the commit to the server's log."""
    server_id = decision.server_id
    if server_id is not None and decision.server_name is None and (server := server_policies.server(tx, server_id)):
        decision = replace(decision, server_name=server.name)
    audit.add(tx, decision)
    tx.after_commit(
        lambda: _log.info(
            "rules.decision",
            outcome=decision.outcome.value,
            action=decision.action,
            actor=decision.actor,
            project_id=decision.project_id,
            server_id=decision.server_id,
            deployment_id=decision.deployment_id,
            stack_id=decision.stack_id,
            reason=decision.reason,
        )
    )


def record_denial(store: Store, refused: DeploymentRefused) -> None:
    """Write the audit entry of a denial in a new transaction, after the rollback of the transaction that raised it."""
    store.write(lambda tx: record(tx, refused.decision))


def _target(server_id: str, server: Governed, tx: Tx | None = None) -> Target:
    """Return the server in the terms of policies. With ``tx``, the target includes the stack that owns the server."""
    trees = set(server.stood_for_by)
    if tx is not None and server.stack_id is not None:
        top = stacks.find(tx, server.stack_id)
        trees.add(top.root_id if top else server.stack_id)
    return Target(
        id=server_id,
        name=server.name,
        project_id=server.project_id,
        trees=frozenset(trees),
        owned=server.stack_id is not None,
        own_agent=server.agent in (None, OWN_AGENT),
    )


def _requester(tx: Tx, request: AuthorizationRequest) -> tuple[Tree | None, str | None]:
    """Return the root of the requesting stack and the name of the requesting user."""
    stack_id = request.stack_id
    if stack_id is None and request.trigger_id is not None:
        # On servers of a stack, a trigger whose source is in the stack counts as the stack itself.
        stack_id = server_policies.stack_of_trigger(tx, request.trigger_id)
    top = server_policies.top(tx, stack_id) if stack_id else None
    if top is None:
        return None, request.actor
    return Tree(top.id, top.name), request.actor or top.username
