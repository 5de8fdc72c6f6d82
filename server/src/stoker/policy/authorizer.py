"""
Authorization of runs: applies the server's policy to each run and records the decision in the audit log, as are refused
writes to containers and queues that belong to servers and deployments.

Every run of a deployment passes the authorizer before it starts. A run is held until the maintenance window of its
server opens, and held again if the window closes before the agent has received the run: ``deployments.server_runs``
holds and releases the runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import structlog
from msgspec.structs import replace

from stoker.hot.words import clip
from stoker.model.audit import Decision, Outcome
from stoker.model.config import DeliveredHook
from stoker.model.deployment import WINDOW
from stoker.model.errors import Conflict, DeploymentRefused, WriteRefused
from stoker.model.server import OWN_AGENT
from stoker.policy import rules, windows
from stoker.policy.rules import PROJECT, SITE_DEFAULTS, Policy, SiteDefaults, Target, Tree
from stoker.store import audit, deployments, held_runs, resources, rows, servers, stacks, triggers
from stoker.store.open import Store
from stoker.store.servers import Governed
from stoker.store.tx import Tx
from stoker.work import Work

_log = structlog.get_logger("stoker.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A run that is about to start, or that a template plans."""

    project_id: str
    server_id: str
    #: The action as the audit log names it.
    action: str
    #: None if the deployment does not exist yet.
    deployment_id: str | None = None
    #: Group of the config; None: not known yet, so only the policy's ``allow`` counts.
    group: str | None
    #: The hook that the agent has to fetch; None: the hook is installed, or not known yet.
    hook: DeliveredHook | None = None
    stack_id: str | None = None
    #: The root of a tree of stacks that is not stored yet.
    tree: Tree | None = None
    #: A resource of the stack may come to represent the server.
    standing: bool = False
    trigger_id: str | None = None
    #: The run changes nothing on the server, so it waits for no maintenance window.
    is_preview: bool = False
    #: Of the last run of a deployment, which cleans up: whether the server had admitted the deployment. No policy
    #: denies this run. None: any other run.
    was_admitted: bool | None = None
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
        server = servers.find_governed(tx, request.server_id, staying=True)
        is_own = server is not None and server.project_id == request.project_id
        cleans_up = request.was_admitted is not None
        if server is not None and not cleans_up and not self._is_free(server, request.hook):
            return self._apply_policy(tx, server, request)
        _record_free(tx, request, server.name if server is not None and is_own else None)
        if not cleans_up:
            return _FREE if is_own else _without_server(request)
        admitted = bool(request.was_admitted)
        if server is None:
            return Admission(admitted=admitted)
        return self._check_windows(tx, server, request, admitted=admitted)

    def _apply_policy(self, tx: Tx, server: Governed, request: AuthorizationRequest) -> Admission:
        """Return the conditions on which a run starts that a policy concerns. Raises DeploymentRefused."""
        decision, stack = self._decide(tx, server, request)
        record(tx, decision)
        if decision.outcome is Outcome.REFUSED:
            raise DeploymentRefused(decision.reason, decision)
        is_own = server.project_id == request.project_id
        admitted = not is_own and rules.admits(load_policy(server.policy), request.project_id, stack)
        if not is_own and not admitted:
            return _without_server(request)
        return self._check_windows(tx, server, request, admitted=admitted)

    def check(self, tx: Tx, request: AuthorizationRequest) -> DeploymentRefused | None:
        """Return the error that ``authorize`` would raise, or None. Writes nothing."""
        server = servers.find_governed(tx, request.server_id)
        if server is None or self._is_free(server, request.hook):
            return None
        decision, _ = self._decide(tx, server, request)
        return None if decision.outcome is Outcome.ALLOWED else DeploymentRefused(decision.reason, decision)

    def _is_free(self, server: Governed, hook: DeliveredHook | None) -> bool:
        """Return whether no policy concerns a run on the server: neither its own nor the site's."""
        return server.policy is None and self.site.allow == PROJECT and hook is None

    def _decide(self, tx: Tx, server: Governed, request: AuthorizationRequest) -> tuple[Decision, Tree | None]:
        """Return the decision, and the root of the requesting stack, if there is one."""
        stack, actor = _requester(tx, request)
        policy, hook = load_policy(server.policy), request.hook
        if request.group is None:
            policy, hook = Policy(allow=policy.allow), None
        reason = rules.decide(
            policy,
            _target(tx, server, request, stack),
            project_id=request.project_id,
            stack=stack,
            group=request.group or "",
            hook=hook,
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

    def _check_windows(self, tx: Tx, server: Governed, request: AuthorizationRequest, *, admitted: bool) -> Admission:
        own_windows = load_policy(server.policy).windows
        runs = admitted or request.project_id == server.project_id
        if not own_windows or not runs or request.is_preview:
            return Admission(admitted=admitted)
        opening = windows.find_opening(own_windows, tx.now)
        schedule_check(tx, self.work, request.server_id, windows.find_change(own_windows, tx.now))
        if opening is None:
            return Admission(admitted=admitted)
        return Admission(admitted, WINDOW, waiting_reason(server.name, opening))


def _without_server(request: AuthorizationRequest) -> Admission:
    """
    Admit a run that will not be delivered, because the project has no such server: another project, which is not
    disclosed, may own it, or an agent of OpenStack may poll with its id.
    """
    return Admission(reason=f"Waiting for an agent: this project has no server with the id {clip(request.server_id)}")


def _admitted(request: AuthorizationRequest, server_name: str | None) -> Decision:
    return Decision(
        project_id=request.project_id,
        actor=request.actor or (f"the stack {request.stack_name}" if request.stack_name else None),
        action=request.action,
        outcome=Outcome.ALLOWED,
        reason="",
        server_id=request.server_id,
        deployment_id=request.deployment_id,
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
    if server_id is not None and decision.server_name is None and (server := servers.find_governed(tx, server_id)):
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


def record_refused_write(tx: Tx, refused: WriteRefused, *, actor: str | None, action: str) -> None:
    """
    Record a refused write to a container or queue by a user, or None if unauthenticated; ``action``: such as ``PUT
    container``, or the name of a type.
    """
    record(
        tx,
        Decision(
            project_id=refused.project_id,
            actor=actor,
            action=action,
            outcome=Outcome.REFUSED,
            reason=refused.message,
            **_find_subject(tx, refused.owner),
        ),
    )


@contextmanager
def audit_refused_writes(tx: Tx, action: str) -> Iterator[None]:
    """
    Record refused writes of a template or of events to a queue of a server or deployment. Raises Conflict for them.

    ``action`` is as in ``record_refused_write``.
    """
    try:
        yield
    except WriteRefused as refused:
        record_refused_write(tx, refused, actor=None, action=action)
        raise Conflict(refused.message) from None


def _find_subject(tx: Tx, owner: str) -> dict[str, str | None]:
    """Return the ids of the objects that an owner's id refers to, by the fields of an audit entry."""
    resource = resources.find(tx, owner)
    if resource is not None:
        id = resource.physical_id or resource.id
        if servers.find(tx, id) is not None:
            return {"server_id": id, "stack_id": resource.stack_id}
        is_deployment = deployments.find(tx, id) is not None
        return {"deployment_id": id if is_deployment else None, "stack_id": resource.stack_id}
    if stacks.find(tx, owner) is not None:
        return {"stack_id": owner}
    return {"deployment_id": owner}


def _target(tx: Tx, server: Governed, request: AuthorizationRequest, stack: Tree | None) -> Target:
    """Return the server in the terms of policies, with the stack that owns the server or may come to represent it."""
    trees = set(server.stood_for_by)
    if server.stack_id is not None:
        top = stacks.find(tx, server.stack_id)
        trees.add(top.root_id if top else server.stack_id)
    elif request.standing and stack is not None and request.project_id == server.project_id:
        trees.add(stack.id)
    return Target(
        id=request.server_id,
        name=server.name,
        project_id=server.project_id,
        trees=frozenset(trees),
        owned=server.stack_id is not None,
        own_agent=server.agent in (None, OWN_AGENT),
    )


def _requester(tx: Tx, request: AuthorizationRequest) -> tuple[Tree | None, str | None]:
    """Return the root of the requesting stack and the name of the requesting user."""
    if request.tree is not None:
        return request.tree, request.actor
    stack_id = request.stack_id
    if stack_id is None and request.trigger_id is not None:
        # On servers of a stack, a trigger whose source is in the stack counts as the stack itself.
        stack_id = triggers.find_stack_id(tx, request.trigger_id)
    top = stacks.find_root(tx, stack_id) if stack_id else None
    if top is None:
        return None, request.actor
    return Tree(top.id, top.name), request.actor or top.username


#: Kind of the job that runs when a window of a server opens or closes. Its key and argument: ``server_id``.
WINDOW_JOB = "server.window"


@lru_cache(maxsize=4096)
def load_policy(text: str | None) -> Policy:
    """Return the policy in a server's row, without checking it again."""
    return Policy() if text is None else rules.read(rows.load(text))


def first_opening(tx: Tx, root_id: str) -> datetime | None:
    """
    Return when the last window opens that runs of a tree of stacks wait for. None: no run waits, or one missed its
    first window because no agent fetched it.
    """
    latest: datetime | None = None
    for server_id, since in held_runs.waiting_deployments(tx, root_id):
        server = servers.find_governed(tx, server_id)
        opening = windows.find_opening(load_policy(server.policy).windows, since) if server is not None else None
        if opening is None or opening <= tx.now:
            return None
        latest = max(latest or opening, opening)
    return latest


def waiting_reason(server_name: str, opening: datetime) -> str:
    """Return the status reason of a run that waits for the window."""
    return f"Waiting for the maintenance window of {server_name}, which opens {rows.heat_time(opening)}"


def schedule_check(tx: Tx, work: Work, server_id: str, at: datetime | None) -> None:
    """Schedule the job that holds or releases the server's runs in place of any earlier one. None only cancels."""
    work.cancel(tx, WINDOW_JOB, server_id)
    if at is not None:
        work.defer(tx, WINDOW_JOB, server_id, {"server_id": server_id}, at=at)
