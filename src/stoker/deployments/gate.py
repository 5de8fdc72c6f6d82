"""Where every run of a deployment comes through: what its server's policy says to it, kept in the audit log."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from stoker.deployments import clock, policy, windows
from stoker.deployments.policy import PROJECT, Policy, Target, Tree
from stoker.deployments.windows import kept
from stoker.model.audit import Decision, Verdict
from stoker.model.config import UNGROUPED
from stoker.model.deployment import WINDOW
from stoker.model.errors import DeploymentRefused
from stoker.store import audit, configs, governing, stacks
from stoker.store.governing import Governed
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work.port import Work

_log = structlog.get_logger("stoker.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A run that is about to begin."""

    project_id: str
    server_id: str
    #: Empty: there is none yet.
    deployment_id: str
    action: str | None
    #: Of the config; None: that of the config with ``config_id``.
    group: str | None = None
    config_id: str | None = None
    stack_id: str | None = None
    trigger_id: str | None = None
    #: None: a stack's action asks.
    who: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """How a run begins."""

    #: The server is another project's, which lets it in.
    admitted: bool = False
    #: WINDOW: it waits, and this says for what.
    withheld: str | None = None
    reason: str | None = None


_FREE = Entry()


@dataclass(frozen=True, slots=True)
class Gate:
    work: Work
    #: STACK or PROJECT: what holds where a server has no policy that says it.
    site: str = PROJECT

    def enter(self, tx: Tx, asking: Asking) -> Entry:
        """
        How it may begin. Raises DeploymentRefused, with the decision in the audit log of this transaction.

        A server that nobody knows, and one without a policy where the site has none, cost the one look.
        """
        server = governing.server(tx, asking.server_id, staying=True)
        if server is None or (server.policy is None and self.site == PROJECT):
            return _FREE
        said = kept(server.policy)
        stack = self._check(tx, server, said, asking)
        admitted = policy.admits(said, _target(asking.server_id, server), project_id=asking.project_id, stack=stack)
        return self._in_time(tx, server, said, asking, admitted=admitted)

    def enter_again(self, tx: Tx, asking: Asking, *, admitted: bool) -> Entry:
        """The last run of what is there already, which no policy keeps from being cleaned up; windows hold."""
        server = governing.server(tx, asking.server_id, staying=True)
        if server is None or server.policy is None:
            return _FREE if not admitted else Entry(admitted=True)
        return self._in_time(tx, server, kept(server.policy), asking, admitted=admitted)

    def foresee(
        self, tx: Tx, *, server_id: str, project_id: str, stack: Tree, group: str | None, who: str, standing: bool
    ) -> None:
        """
        Raises DeploymentRefused for what ``enter`` would refuse. ``group`` None: not known yet; ``standing``: the stack
        may come to have a resource that stands for the server.
        """
        server = governing.server(tx, server_id)
        if server is None or (server.policy is None and self.site == PROJECT):
            return
        said, target = kept(server.policy), _target(server_id, server, tx)
        if standing and not target.owned and project_id == server.project_id:
            target = Target(
                id=target.id, name=target.name, project_id=target.project_id, trees=target.trees | {stack.id}
            )
        if group is None:
            said = Policy(allow=said.allow)
        why = policy.decide(said, target, project_id=project_id, stack=stack, group=group or "", site=self.site)
        if why is not None:
            made = Decision(
                project_id=server.project_id,
                who=who,
                what="validate",
                decision=Verdict.REFUSED,
                reason=why,
                server_id=server_id,
                stack_id=stack.id,
            )
            raise DeploymentRefused(why, made)

    def refusal(self, tx: Tx, asking: Asking) -> DeploymentRefused | None:
        """What ``enter`` would raise; nothing is written."""
        server = governing.server(tx, asking.server_id)
        if server is None or (server.policy is None and self.site == PROJECT):
            return None
        made, _ = self._decision(tx, server, kept(server.policy), asking)
        return None if made.decision is Verdict.ALLOWED else DeploymentRefused(made.reason, made)

    def _check(self, tx: Tx, server: Governed, said: Policy, asking: Asking) -> Tree | None:
        """Raises DeploymentRefused. Returns the top of the stack that asks, where that matters."""
        made, stack = self._decision(tx, server, said, asking)
        record(tx, made)
        if made.decision is Verdict.REFUSED:
            raise DeploymentRefused(made.reason, made)
        return stack

    def _decision(self, tx: Tx, server: Governed, said: Policy, asking: Asking) -> tuple[Decision, Tree | None]:
        group = asking.group
        if group is None and said.groups is not None and asking.config_id is not None:
            config = configs.find(tx, asking.config_id)
            group = config.group if config else None
        stack, who = _asker(tx, asking)
        target = _target(asking.server_id, server, tx)
        why = policy.decide(
            said, target, project_id=asking.project_id, stack=stack, group=group or UNGROUPED, site=self.site
        )
        made = Decision(
            project_id=server.project_id,
            who=who,
            what=f"run {asking.action or ''}".strip(),
            decision=Verdict.ALLOWED if why is None else Verdict.REFUSED,
            reason=why or "The server's policy lets it in.",
            server_id=asking.server_id,
            deployment_id=asking.deployment_id or None,
            stack_id=asking.stack_id,
        )
        return made, stack

    def _in_time(self, tx: Tx, server: Governed, said: Policy, asking: Asking, *, admitted: bool) -> Entry:
        runs = admitted or asking.project_id == server.project_id
        if not said.windows or not runs:
            return Entry(admitted=admitted)
        opening = clock.opens(said.windows, tx.now)
        windows.look_again(tx, self.work, asking.server_id, opening or clock.closes(said.windows, tx.now))
        if opening is None:
            return Entry(admitted=admitted)
        return Entry(admitted, WINDOW, windows.waiting(server.name, opening))


def record(tx: Tx, made: Decision) -> None:
    """In the audit log and, once that is on disk, in the server's own log."""
    audit.add(tx, made)
    tx.after_commit(
        lambda: _log.info(
            "decided",
            decision=made.decision.value,
            what=made.what,
            who=made.who,
            project_id=made.project_id,
            server_id=made.server_id,
            deployment_id=made.deployment_id,
            stack_id=made.stack_id,
            reason=made.reason,
        )
    )


def keep(store: Store, refused: DeploymentRefused) -> None:
    """What was written with the decision is undone with all the rest of a transaction: written anew, in its own."""
    store.write(lambda tx: record(tx, refused.decision))


def _target(server_id: str, server: Governed, tx: Tx | None = None) -> Target:
    """With ``tx``, also what it belongs to."""
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
    )


def _asker(tx: Tx, asking: Asking) -> tuple[Tree | None, str | None]:
    """The top of the stack that asks, and who does."""
    stack_id = asking.stack_id
    if stack_id is None and asking.trigger_id is not None:
        # On its stack's own servers, what is triggered of a stack is the stack's business.
        stack_id = governing.stack_of_trigger(tx, asking.trigger_id)
    top = governing.top(tx, stack_id) if stack_id else None
    if top is None:
        return None, asking.who
    return Tree(top.id, top.name), asking.who or top.username
