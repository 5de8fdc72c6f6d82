"""/identity/v3/users/{user}/application_credentials"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.identity import rules, shapes
from stoker.identity import administration, passwords
from stoker.model.errors import Forbidden, Invalid
from stoker.store import application_credentials


def index(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        found = application_credentials.of_user(tx, call.path["user_id"])
    name = call.query.get("name")
    shown = [shapes.credential(each) for each in found if name in (None, each.name)]
    return Reply(200, {"application_credentials": shown, "links": {}})


def show(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        found = administration.credential(tx, call.path["user_id"], call.path["credential_id"])
    return Reply(200, {"application_credential": shapes.credential(found)})


def create(call: Call) -> Reply:
    """For the user of the token, in its project."""
    _own(call)
    project = call.user.project_id
    if project is None:
        raise Invalid("an application credential is made with a token of the project that it is for")
    said = rules.body(call, "application_credential")
    name = rules.name(said)
    secret, hashed = _secret(said)
    made = call.services.store.write(
        lambda tx: administration.create_credential(
            tx,
            call.user.user_id,
            project,
            name=name,
            description=reading.text(said.get("description"), "description", 65535) or "",
            secret_hash=hashed,
            roles=_roles(said.get("roles")),
            unrestricted=said.get("unrestricted") is True,
            expires_at=_moment(said.get("expires_at")),
        )
    )
    return Reply(201, {"application_credential": {**shapes.credential(made), "secret": secret}})


def delete(call: Call) -> Reply:
    _own(call)
    id = call.path["credential_id"]
    call.services.store.write(lambda tx: administration.delete_credential(tx, call.path["user_id"], id))
    return Reply(204)


def _own(call: Call) -> None:
    """Also a program may do this only when it was made unrestricted."""
    if call.path["user_id"] != call.user.user_id or call.user.restricted:
        raise Forbidden("You are not authorized to perform the requested action.")


def _secret(said: dict[str, Any]) -> tuple[str, str]:
    given = reading.text(said.get("secret"), "secret", 4096)
    return (given, passwords.hashed(given)) if given else administration.new_secret()


def _roles(said: Any) -> list[str] | None:
    if said is None or said == []:
        return None
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise Invalid("roles must be a list of objects with an id or a name")
    return [str(each.get("id") or each.get("name")) for each in said]


def _moment(said: Any) -> datetime | None:
    if said is None:
        return None
    try:
        found = datetime.fromisoformat(str(said).replace("Z", "+00:00"))
    except ValueError:
        raise Invalid(f"expires_at must be a time like 2030-01-31T12:00:00, not {said!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
