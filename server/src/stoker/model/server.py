"""
Servers: machines or processes with an agent, or the resources that represent them in a stack. With their labels, the
facts that their agents report, their enrollments, and the relays of remote sites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from stoker.model.config import HOOK_OPTION, HOOK_REQUIRED
from stoker.model.errors import Invalid

#: The value of a server's ``agent`` for Stoker's own agent.
OWN_AGENT = "stoker"
#: The maximum length of a server's id, in characters.
LONGEST_ID = 36
#: The agent looks for a file with the group's name without these characters.
_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_-]")
#: Hooks that an error names.
_SHOWN_HOOKS = 40


class Kind(StrEnum):
    """How a server came to be known: enrolled by its agent, a local process, or a server resource of a stack."""

    ENROLLED = "enrolled"
    LOCAL = "local"
    DEPLOYED = "deployed"


class AgentAccess(StrEnum):
    """Whether the server's agent may use its key: after an enrollment, before its approval, after it has left."""

    ALLOWED = "ALLOWED"
    PENDING_APPROVAL = "PENDING_APPROVAL"
    LEFT = "LEFT"


class NameSource(StrEnum):
    """Where the name of a server comes from that enrolls with a token for many machines."""

    HOSTNAME = "hostname"
    CLOUD_ID = "cloud-id"


@dataclass(frozen=True, slots=True)
class ServerOwner:
    """The stack resource that owns a server."""

    stack_id: str
    resource_id: str
    resource_name: str


class Server(Struct, frozen=True, kw_only=True):
    """A server, which runs configs."""

    id: str
    project_id: str
    name: str
    kind: Kind
    created_at: datetime
    stack_id: str | None = None
    resource_id: str | None = None
    resource_name: str | None = None
    #: The number of issued keys; an increment revokes the older keys. 0: no key was issued.
    key_generation: int = 0
    agent_access: AgentAccess = AgentAccess.ALLOWED
    #: The enrollment with which the machine got its key, and the identity of the machine (``Machine``).
    enrollment_id: str | None = None
    instance: str | None = None
    machine: str | None = None
    last_seen: datetime | None = None
    #: The agent on the server, as its resource declares it; None: the default of the server's kind.
    agent: str | None = None
    agent_version: str | None = None
    hooks: tuple[str, ...] = ()
    #: The modes of runs that the agent knows besides applying a config (``model.deployment``).
    modes: tuple[str, ...] = ()
    hostname: str | None = None
    #: The machine chose the name itself: no stack uses the name until a user approves the server by it.
    is_self_named: bool = False
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: In the form that ``deployments.policy`` reads; None: the default policy of the site.
    policy: Mapping[str, Any] | None = None
    #: Of an enrolled server: the resources that represent it, each by its id with the id of the root stack of its tree.
    stands_for: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def has_channel(self) -> bool:
        """
        Whether the server's agent is Stoker's own and polls Stoker with a key.

        This includes an agent that was enrolled for a waiting server resource.
        """
        return self.kind is not Kind.DEPLOYED or self.key_generation > 0

    @property
    def has_own_agent(self) -> bool:
        """Whether the server runs Stoker's own agent, as far as its resource declares it."""
        if self.kind is Kind.ENROLLED or self.agent is None:
            return self.has_channel
        return self.agent == OWN_AGENT

    def describe_missing_hook(self, groups: Iterable[str], project_id: str) -> str | None:
        """
        Return why the agent has no hook for one of these groups, with a remedy, or None. Only a certain lack counts, by
        what Stoker's agent has reported, and what another project's server has is not disclosed.
        """
        if self.project_id != project_id or not self.has_own_agent or not self.hooks:
            return None
        missing = sorted(group for group in groups if _NOT_IN_FILES.sub("", group) not in self.hooks)
        if not missing:
            return None
        hooks = ", ".join(self.hooks[:_SHOWN_HOOKS])
        return (
            f"server {self.name!r} has no hook for the group {missing[0]!r:.100} (it has {hooks}): install the hook"
            f" there, let the config deliver it (option {HOOK_OPTION}), or set the config's option {HOOK_REQUIRED} to"
            " false if it is installed before the run"
        )

    def status(self, now: datetime, offline_after: timedelta) -> str:
        """
        Return PENDING_APPROVAL, LEFT, ONLINE, OFFLINE, ENROLLING or NEVER_SEEN at the time ``now``.

        ``offline_after`` is the time without a heartbeat after which the agent is considered offline.
        """
        if self.agent_access is not AgentAccess.ALLOWED:
            return self.agent_access.value
        if self.last_seen is not None:
            return "ONLINE" if now - self.last_seen < offline_after else "OFFLINE"
        return "ENROLLING" if self.kind is Kind.ENROLLED and not self.key_generation else "NEVER_SEEN"


class Enrollment(Struct, frozen=True, kw_only=True):
    """A token that agents exchange for keys: for one server, or for a server of each machine."""

    id: str
    project_id: str
    token_hash: str
    created_at: datetime
    created_by: str | None
    expires_at: datetime
    #: None: every machine that redeems the token becomes a new server.
    server_id: str | None = None
    #: The number of machines that may redeem the token, and of those that have.
    limit: int = 1
    uses: int = 0
    #: Where the names of new servers come from.
    name_from: NameSource = NameSource.HOSTNAME
    #: Stacks may use the names of new servers that match this pattern of the shell; None: no name.
    names: str | None = None
    #: The labels of new servers.
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: The keys of new servers are of no use until a user approves the servers.
    needs_approval: bool = False
    #: The machine runs again what its server has completed.
    reruns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """
    The machine that redeems a token, as its agent describes it.

    ``instance`` is random and stored with the agent's state. ``machine`` derives from confidential ids of the machine,
    so that an agent that lost its state has it again; empty if the machine has none.
    """

    instance: str
    machine: str = ""
    hostname: str = ""
    cloud_id: str = ""
    #: The key that the agent has already; empty: none.
    key: str = field(default="", repr=False)


class Relay(Struct, frozen=True, kw_only=True):
    """A relay, as a user of the project has created it."""

    id: str
    project_id: str
    name: str
    #: Where the site's agents reach the relay.
    url: str
    #: The certificates, in PEM, with which agents verify the relay; None: those that their machines trust.
    ca: str | None = None
    #: SHA-256 of the key; the key itself is not stored.
    key_hash: str
    created_at: datetime
    created_by: str | None = None
    last_seen: datetime | None = None
    #: The agents that it served then.
    agents: int = 0
    #: The version of the relay's program.
    version: str | None = None


#: The member for facts of the site, whose names Stoker does not know.
CUSTOM = "custom"
#: Why the agent can start no run, for example because its disk is full; absent if it can.
PROBLEM = "problem"
#: The server's labels. Stoker adds them to the facts that it shows: an agent cannot choose its labels.
LABELS = "labels"
#: Names of facts. A selector that names anything else means a label.
FACT_NAMES = frozenset(
    (
        *("os", "kernel", "arch", "cpus", "memory_mb", "hostname", "fqdn", "address", "networks", "cloud"),
        *("virtualization", "container", "python", "agent", "hooks", "tools", PROBLEM, CUSTOM, LABELS),
    )
)


class FactsSummary(Struct, frozen=True, kw_only=True):
    """What lists show of the newest facts of a server."""

    server_id: str
    #: Name and version of the operating system, for people.
    os: str | None
    #: The address with which the machine reaches other networks.
    address: str | None
    #: Why the agent can start no run, for people.
    problem: str | None
    reported_at: datetime


class ServerFacts(FactsSummary, frozen=True, kw_only=True):
    """The newest facts of a server."""

    facts: Mapping[str, Any]


def with_labels(facts: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of a server with its labels, which are left out if there are none, like any empty fact."""
    return {**facts, LABELS: dict(labels)} if labels else dict(facts)


def describe_os(facts: Mapping[str, Any]) -> str | None:
    """Return the name and the version of the operating system, for people, or None."""
    os = facts.get("os")
    words = [os.get("name") or os.get("id"), os.get("version")] if isinstance(os, Mapping) else []
    return " ".join(str(word) for word in words if word) or None


#: The maximum number of labels of a server.
MOST_LABELS = 64
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LABEL_SYNTAX = (
    # the wording of Kubernetes
    "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)


def check_labels(labels: Any) -> dict[str, str]:
    """Validate a complete set of labels and return it. Raises Invalid, which names the label and the error."""
    if not isinstance(labels, Mapping):
        raise Invalid(f"labels must be a map of names and values, not {type(labels).__name__}")
    if len(labels) > MOST_LABELS:
        raise Invalid(f"labels: a server may have {MOST_LABELS} labels, not {len(labels)}")
    return {_check_label_name(key): _check_label_value(key, value) for key, value in labels.items()}


def change_labels(had: Mapping[str, str], changes: Any) -> dict[str, str]:
    """Return the labels ``had`` with ``changes`` applied; the value None removes a label. Raises Invalid."""
    if not isinstance(changes, Mapping):
        return check_labels(changes)
    left = {key: value for key, value in had.items() if key not in changes}
    new = {key: value for key, value in changes.items() if value is not None}
    return check_labels({**left, **new})


def _check_label_name(key: Any) -> str:
    prefix, slash, name = key.rpartition("/") if isinstance(key, str) else ("", "", "")
    if not _LABEL_NAME.fullmatch(name) or (slash and not _LABEL_PREFIX.fullmatch(prefix)):
        shown = repr(key)[:80]
        raise Invalid(f"labels: invalid label name {shown}: {_LABEL_SYNTAX}, with an optional prefix DNS-NAME/")
    return str(key)


def _check_label_value(key: Any, value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid(f"labels.{key}: a label's value must be a string, not {type(value).__name__}: put it in quotes")
    if value and not _LABEL_NAME.fullmatch(value):
        raise Invalid(f"labels.{key}: {value[:80]!r} is no label's value: empty, or {_LABEL_SYNTAX}")
    return value
