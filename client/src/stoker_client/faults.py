"""Translates keystoneauth's exceptions and error bodies to the client's exceptions. No other module reads them."""

import json
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import exceptions as ksa

from stoker_client.errors import BadAnswer, ClientError, NotConfigured, NotFound, Refused, Unreachable

START = "start it with `stoker serve`, or choose another cloud with OS_CLOUD"
CREDENTIALS = "check OS_USERNAME and OS_PASSWORD, or the cloud's entry in clouds.yaml (`stoker env` prints them)"

#: Heat's message for a request that the roles of the login do not allow.
_FORBIDDEN = "You are not authorized to complete this action."
_NO_ROLE = "no role of this login allows that; an administrator grants roles with `stoker user grant`"

# The command that lists the objects of a path, suggested when an object is missing.
LISTS = {
    "stacks": "`stoker stack list` lists them",
    "software_configs": "`stoker config list` lists them",
    "software_deployments": "`stoker deployment list` lists them",
    "software_triggers": "`stoker trigger list` lists them",
    "software_schedules": "`stoker schedule list` lists them",
    "servers": "`stoker server list` lists them",
}

_NAME_CA = "name its CA with OS_CACERT"
#: What to do about a certificate, by OpenSSL's X509_V_ERR codes.
_CERTIFICATE_REMEDIES = {
    9: "check this machine's clock",
    10: "renew the service's certificate",
    62: "use a name of the certificate in the service's URL",
    64: "use an address of the certificate in the service's URL",
}


def error_of_answer(status: int, text: str, path: str) -> Refused:
    """Return the error for an answer of ``status`` with the body ``text``, to a request for ``path``."""
    message = body_message(text)
    if status == 401:
        return Refused(f"the service does not accept this login: {message or 'Unauthorized'}; {CREDENTIALS}", status)
    if status == 403:
        return Refused(_NO_ROLE if message in ("", _FORBIDDEN) else f"not allowed: {message}", status)
    if status == 404:
        return NotFound(_not_found(message, path), status)
    if status >= 500:
        return Refused(f"the service failed ({status}): {message or 'it gave no reason'}; see its log", status)
    return Refused(message or f"the service refused the request with status {status}", status)


def _not_found(message: str, path: str) -> str:
    if not message:
        return f"nothing answers to {path} there: does the cloud's catalog lead to an orchestration service?"
    noun, _, which = path.partition("?")[0].strip("/").partition("/")
    remedy = LISTS.get(noun) if which else None  # without an id in the path, the missing object is not of this kind
    return f"{message.rstrip('.')}; {remedy}" if remedy else message


def body_message(text: str) -> str:
    """Return the message in an error body of Heat or Keystone, or "" for any other body."""
    try:
        body: Any = json.loads(text)
    except ValueError:
        return ""
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or (body.get("explanation") if isinstance(body, dict) else "") or "").strip()


def error_of_exception(problem: Exception, address: str) -> ClientError:
    """Return the error for an exception of keystoneauth that a request to ``address`` raised."""
    chain = list(_chain(problem))
    for kind, error_type, sentence in _SENTENCES:
        if error := next((link for link in chain if isinstance(link, kind)), None):
            text = sentence.format(address=address, reason=first_line(error), system=_system_reason(chain))
            return Refused(text, 401) if error_type is Refused else error_type(text)
    return BadAnswer(f"cannot talk to {address}: {first_line(problem)}")


# Ordered by precision: a failed discovery, for example, often has a refused connection as its cause.
_SENTENCES: tuple[tuple[Any, Any, str], ...] = (
    (ksa.SSLError, Unreachable, "cannot trust {address}: {system}"),
    (ksa.ConnectTimeout, Unreachable, "{address} takes too long to answer; try again, or look at the server's log"),
    (ksa.ConnectionError, Unreachable, f"cannot reach {{address}}: {{system}}; {START}"),
    (ksa.Unauthorized, Refused, f"{{address}} does not accept this login: {{reason}}; {CREDENTIALS}"),
    (
        ksa.DiscoveryFailure,
        BadAnswer,
        "{address} does not answer like an identity service: check OS_AUTH_URL or the entry's auth_url",
    ),
    (
        (ksa.EndpointNotFound, ksa.EmptyCatalog),
        NotConfigured,
        "the catalog of {address} has no orchestration service in this region and interface",
    ),
    (ksa.HttpError, BadAnswer, "cannot log in at {address}: {reason}"),
    (
        (ksa.MissingAuthPlugin, ksa.MissingRequiredOptions, ksa.NoMatchingPlugin),
        NotConfigured,
        f"the cloud's login is incomplete: {{reason}}; {CREDENTIALS}",
    ),
)


def _chain(problem: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes, outermost first."""
    link: BaseException | None = problem
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def first_line(problem: BaseException) -> str:
    """Return the first line of an exception's text, or its type."""
    return next(iter(str(problem).splitlines()), "") or type(problem).__name__


def _system_reason(chain: list[BaseException]) -> str:
    """Return what OpenSSL with a remedy, or the operating system, says, without the exceptions around it."""
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError):
            remedy = _CERTIFICATE_REMEDIES.get(link.verify_code, _NAME_CA)
            return f"{link.verify_message}; {remedy}"
    if any(isinstance(link, ksa.SSLError) for link in chain):
        return f"{first_line(chain[-1])}; {_NAME_CA}"
    os_errors = (link for link in chain if isinstance(link, OSError) and isinstance(link.errno, int) and link.strerror)
    return str(next((link.strerror for link in os_errors), "")) or "no connection"


def origin(url: str) -> str:
    """Return the scheme and host of ``url``, the part that a user can verify."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url
