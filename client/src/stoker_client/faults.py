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

# The command that lists the objects of a path, suggested when an object is missing.
LISTS = {
    "stacks": "`stoker stack list` lists them",
    "software_configs": "`stoker config list` lists them",
    "software_deployments": "`stoker deployment list` lists them",
    "software_triggers": "`stoker trigger list` lists them",
    "software_schedules": "`stoker schedule list` lists them",
    "servers": "`stoker server list` lists them",
}


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
        return Refused(f"this login may not do that: {message or 'Forbidden'}", status)
    if status == 404:
        return NotFound(_not_found(message, path), status)
    if status >= 500:
        return Refused(f"the service failed ({status}): {message or 'it gave no reason'}; its log says more", status)
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
    for kind, sentence in _SENTENCES:
        error = next((link for link in chain if isinstance(link, kind)), None)
        if error is not None:
            return sentence(error, chain, address)
    return BadAnswer(f"cannot talk to {address}: {_first_line(problem)}")


def _chain(problem: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes, outermost first."""
    link: BaseException | None = problem
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _first_line(problem: BaseException) -> str:
    return next(iter(str(problem).splitlines()), "") or type(problem).__name__


def _system_reason(chain: list[BaseException]) -> str:
    """Return the operating system's message, such as ``Connection refused``, without the exceptions around it."""
    os_errors = (link for link in chain if isinstance(link, OSError) and isinstance(link.errno, int) and link.strerror)
    return str(next((link.strerror for link in os_errors), "")) or "no connection"


def _unsafe(_found: BaseException, chain: list[BaseException], address: str) -> ClientError:
    error = next((link for link in chain if isinstance(link, ssl.SSLCertVerificationError)), None)
    reason = _first_line(chain[-1]) if error is None else error.verify_message
    remedy = _CERTIFICATE_REMEDIES.get(0 if error is None else error.verify_code, "name its CA with OS_CACERT")
    return Unreachable(f"cannot trust {address}: {reason}; {remedy}")


def _slow(_found: BaseException, _chain: list[BaseException], address: str) -> ClientError:
    return Unreachable(f"{address} takes too long to answer; try again, or look at the server's log")


def _unreachable(_found: BaseException, chain: list[BaseException], address: str) -> ClientError:
    return Unreachable(f"cannot reach {address}: {_system_reason(chain)}; {START}")


def _login(error: BaseException, _chain: list[BaseException], address: str) -> ClientError:
    return Refused(f"{address} does not accept this login: {_first_line(error)}; {CREDENTIALS}", 401)


def _http(error: BaseException, _chain: list[BaseException], address: str) -> ClientError:
    return BadAnswer(f"cannot log in at {address}: {_first_line(error)}")


def _no_identity(_found: BaseException, _chain: list[BaseException], address: str) -> ClientError:
    return BadAnswer(f"{address} does not answer like an identity service: check OS_AUTH_URL or the entry's auth_url")


def _no_endpoint(_found: BaseException, _chain: list[BaseException], address: str) -> ClientError:
    return NotConfigured(f"the catalog of {address} has no orchestration service in this region and interface")


def _no_auth(error: BaseException, _chain: list[BaseException], _address: str) -> ClientError:
    return NotConfigured(f"the cloud's login is incomplete: {_first_line(error)}; {CREDENTIALS}")


# Ordered by precision: a failed discovery, for example, often has a refused connection as its cause.
_SENTENCES = [
    (ksa.SSLError, _unsafe),
    (ksa.ConnectTimeout, _slow),
    (ksa.ConnectionError, _unreachable),
    (ksa.Unauthorized, _login),
    (ksa.DiscoveryFailure, _no_identity),
    (ksa.EndpointNotFound, _no_endpoint),
    (ksa.EmptyCatalog, _no_endpoint),
    (ksa.HttpError, _http),
    ((ksa.MissingAuthPlugin, ksa.MissingRequiredOptions, ksa.NoMatchingPlugin), _no_auth),
]


def origin(url: str) -> str:
    """Return the scheme and host of ``url``, the part that a user can verify."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url
