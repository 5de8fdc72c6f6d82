"""
Redemption: an agent exchanges a token for the key of its server. This module decides who a machine is.

A machine describes itself, so its description gives it nothing that belongs to another machine:

- A server passes to a machine that proves that it is the server: by the random id of the agent's installation, which
  only this agent knows, or by the server's present key. It passes to any other machine by a user's decision only: an
  enrollment of this server (``stoker server enroll NAME --again``).
- A name that a machine chose is used by no stack (``store.servers.find_enrolled``), unless the enrollment's pattern
  permits the name or a user approves the server by this name (``enrollment.approve``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from uuid import uuid4

from msgspec.structs import replace

from stoker.model.errors import Invalid, Unauthorized
from stoker.model.server import AgentAccess, Enrollment, Kind, Machine, NameSource, Server
from stoker.servers.enrollment import check_name, hash_token
from stoker.servers.keys import Keys
from stoker.store import servers
from stoker.store.tx import Tx

_WRONG = "This enrollment token is not valid, or has been used already: enroll the server again."
_LONGEST_NAME = 240


class TokenRefused(Unauthorized):
    """A token of an existing enrollment is not accepted. ``reason`` is for the audit log."""

    def __init__(self, enrollment: Enrollment, reason: str) -> None:
        super().__init__(_WRONG)
        self.enrollment = enrollment
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Redemption:
    """What a machine got for a token."""

    server: Server
    key: str
    enrollment: Enrollment
    #: Another installation of the agent had the server's key before, and may have been running configs.
    replaces: bool


def redeem_token(tx: Tx, keys: Keys, token: str, machine: Machine) -> Redemption:
    """
    Give a machine the key of its server. Raises Unauthorized, and TokenRefused if the enrollment exists.

    The same installation gets the same key again, in case the agent was killed before it stored the key. A new
    installation on the same machine gets a new key of the same server if it has the present one; else it is another
    machine.
    """
    enrollment = servers.enrollment_of_token(tx, hash_token(token))
    if enrollment is None:
        raise Unauthorized(_WRONG)
    if enrollment.expires_at <= tx.now:
        raise TokenRefused(enrollment, "The enrollment has expired")
    server = _find_proven(tx, keys, enrollment, machine)
    if server is not None and server.instance == machine.instance and server.agent_access is not AgentAccess.LEFT:
        return Redemption(server, keys.present(server.id, server.key_generation), enrollment, replaces=False)
    if server is None:
        if enrollment.uses >= enrollment.limit:
            raise TokenRefused(enrollment, f"All {enrollment.limit} places of the enrollment are taken")
        servers.update_enrollment(tx, enrollment.id, uses=enrollment.uses + 1)
        server = _take_place(tx, enrollment, machine)
    return _give_key(tx, keys, enrollment, server, machine)


def _find_proven(tx: Tx, keys: Keys, enrollment: Enrollment, machine: Machine) -> Server | None:
    """Return the server that this machine became with the enrollment, if the machine proves it."""
    server = servers.find_redeemed(tx, enrollment.id, machine)
    if server is None or server.instance == machine.instance or keys.is_present(server, machine.key):
        return server
    return None


def _take_place(tx: Tx, enrollment: Enrollment, machine: Machine) -> Server:
    if enrollment.server_id is None:
        return _create_server(tx, enrollment, machine)
    server = servers.find(tx, enrollment.server_id, for_update=True)
    if server is None:
        raise Unauthorized(_WRONG)
    return server


def _give_key(tx: Tx, keys: Keys, enrollment: Enrollment, server: Server, machine: Machine) -> Redemption:
    replaces = server.key_generation > 0 and server.instance != machine.instance
    has_left = server.agent_access is AgentAccess.LEFT
    if has_left or (server.agent_access is not AgentAccess.ALLOWED and enrollment.server_id is not None):
        access = AgentAccess.PENDING_APPROVAL if enrollment.needs_approval else AgentAccess.ALLOWED
        servers.change(tx, server.id, agent_access=access)
        server = replace(server, agent_access=access)
    servers.change(
        tx,
        server.id,
        enrollment_id=enrollment.id,
        instance=machine.instance,
        machine=machine.machine or None,
        hostname=machine.hostname,
    )
    return Redemption(server, keys.issue(tx, server.id), enrollment, replaces)


def _create_server(tx: Tx, enrollment: Enrollment, machine: Machine) -> Server:
    access = AgentAccess.PENDING_APPROVAL if enrollment.needs_approval else AgentAccess.ALLOWED
    name = _free_name(tx, enrollment, machine)
    server = Server(
        id=str(uuid4()),
        project_id=enrollment.project_id,
        name=name,
        is_self_named=enrollment.names is None or not fnmatchcase(name, enrollment.names),
        kind=Kind.ENROLLED,
        created_at=tx.now,
        agent_access=access,
        labels=enrollment.labels,
    )
    servers.add(tx, server)
    return server


def _free_name(tx: Tx, enrollment: Enrollment, machine: Machine) -> str:
    """Return the machine's name; if a server of the project has it, with the first free number as suffix."""
    names = (machine.cloud_id if enrollment.name_from is NameSource.CLOUD_ID else "", machine.hostname)
    name = next((name[:_LONGEST_NAME] for name in names if _is_name(name)), "server")
    servers.lock_names(tx, enrollment.project_id)
    candidates, number, count = [name], 2, 10
    while True:
        taken = set(servers.find_names(tx, enrollment.project_id, candidates))
        free = next((candidate for candidate in candidates if candidate not in taken), None)
        if free is not None:
            return free
        # More at a time, because thousands of machines may have one name.
        candidates = [f"{name}-{number + following}" for following in range(count)]
        number, count = number + count, count * 10


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except Invalid:
        return False
    return True
