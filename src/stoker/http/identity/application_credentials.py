"""/identity/v3/users/{user_id}/application_credentials"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.http import params as http_params
from stoker.http.identity import params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration, passwords
from stoker.model.errors import Invalid
from stoker.store import application_credentials


def index(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = application_credentials.of_user(tx, request.path["user_id"])
    name = request.query.get("name")
    shown = [serializers.credential(each) for each in found if name in (None, each.name)]
    return Response(200, {"application_credentials": shown, "links": {}})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = administration.credential(tx, request.path["user_id"], request.path["credential_id"])
    return Response(200, {"application_credential": serializers.credential(found)})


def create(request: RequestContext) -> Response:
    """
    Create an application credential for the token's user in the token's project.

    The response is the only one that contains the secret.
    """
    said = params.read_body(request, "application_credential")
    name = params.read_name(said)
    secret, hashed = _secret(request, said)
    made = request.app.store.write(
        lambda tx: administration.create_credential(
            tx,
            request.user,
            name=name,
            description=http_params.text(said.get("description"), "description", 65535) or "",
            secret_hash=hashed,
            roles=_roles(said.get("roles")),
            unrestricted=said.get("unrestricted") is True,
            expires_at=_moment(said.get("expires_at")),
        )
    )
    return Response(201, {"application_credential": {**serializers.credential(made), "secret": secret}})


def delete(request: RequestContext) -> Response:
    id = request.path["credential_id"]
    request.app.store.write(lambda tx: administration.delete_credential(tx, request.path["user_id"], id))
    return Response(204)


def _secret(request: RequestContext, said: dict[str, Any]) -> tuple[str, str]:
    given = http_params.text(said.get("secret"), "secret", 4096)
    least = request.app.settings.min_password_length
    if given and len(given) < least:
        raise Invalid(f"secret must have at least {least} characters (min_password_length); Stoker can generate one")
    return (given, passwords.hash_password(given)) if given else administration.new_secret()


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
