"""The network checks of ``stoker-agent doctor``: from the name of Stoker's host to its document."""

from __future__ import annotations

import email.utils
import http.client
import socket
import ssl
import time
import urllib.parse
from typing import Iterator, NamedTuple, Optional

from stoker_agent.channel import call_once
from stoker_agent.config import Config
from stoker_agent.doctor import FAILURE, OK, SKIPPED, WARNING, Check
from stoker_agent.proxy import find_proxy
from stoker_agent.web import Unreachable, create_connection, create_context

_SECONDS = 10.0
_SKEW_SECONDS, _LARGE_SKEW_SECONDS = 30.0, 300.0
_EXPIRY_DAYS = 14


class _Target(NamedTuple):
    scheme: str
    host: str
    port: int


def check_network(config: Config, *, is_running: bool) -> Iterator[Check]:
    """Check each step to Stoker. The first failure ends the checks, because the others depend on it."""
    parts = urllib.parse.urlsplit(config.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Check("url", FAILURE, f"{config.url} is no URL of HTTP", "stoker-agent config set url URL")
        return
    target = _Target(parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
    steps = [_check_route(target), _check_tls(target, config), _check_http(config), _check_key(config)]
    for step in steps:
        for check in step:
            yield check
            if check.outcome == FAILURE:
                return
    if is_running:
        yield Check("document", SKIPPED, "the running agent holds the poll; see stoker-agent status")
    elif config.key:
        yield _check_document(config)


def _check_route(target: _Target) -> Iterator[Check]:
    proxy = find_proxy(target.scheme, target.host)
    host, port = (proxy.host, proxy.port) if proxy else (target.host, target.port)
    via = f"proxy {host}:{port}{' with a login' if proxy.headers else ''}" if proxy else "none"
    yield Check("proxy", OK, via)
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        remedy = "check the name, /etc/resolv.conf and /etc/hosts"
        yield Check("dns", FAILURE, f"{host} has no address: {error.strerror or error}", remedy)
        return
    addresses = sorted({str(entry[4][0]) for entry in entries})
    yield Check("dns", OK, f"{host} is {', '.join(addresses)}")
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except OSError as error:
        remedy = "check that Stoker runs, its port, firewalls and routes; a site may need a proxy"
        yield Check("tcp", FAILURE, f"cannot connect to {host}:{port}: {error.strerror or error}", remedy)
        return
    yield Check("tcp", OK, f"{host}:{port} accepts connections")


def _check_tls(target: _Target, config: Config) -> Iterator[Check]:
    if target.scheme == "http":
        yield Check("tls", WARNING, "the URL is plain HTTP", "serve Stoker with TLS (docs/operations.md)")
        return
    try:
        context = create_context(config.ca_file)
        expires = _read_expiry(target, context)
    except ssl.SSLCertVerificationError as error:
        yield Check("tls", FAILURE, f"the certificate is not valid: {error.verify_message}", _remedy(error))
        return
    except (OSError, ValueError, http.client.HTTPException) as error:
        remedy = "check that the URL's port serves TLS, and the CA file"
        yield Check("tls", FAILURE, f"{type(error).__name__}: {error}", remedy)
        return
    days = int((expires - time.time()) // 86400) if expires else None
    if days is not None and days < _EXPIRY_DAYS:
        yield Check("tls", WARNING, f"the certificate expires in {days} days", "renew Stoker's certificate")
        return
    trust = config.ca_file or "the system's certificates"
    yield Check("tls", OK, f"verified with {trust}, valid for {days} days")


def _read_expiry(target: _Target, context: ssl.SSLContext) -> Optional[float]:
    """Connect by TLS and return the time at which the certificate expires."""
    connection = create_connection(target, context)
    connection.timeout = _SECONDS
    try:
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        certificate = connection.sock.getpeercert() or {}
    finally:
        connection.close()
    until = certificate.get("notAfter")
    return ssl.cert_time_to_seconds(str(until)) if until else None


def _remedy(error: ssl.SSLCertVerificationError) -> str:
    message = error.verify_message.lower()
    if "expired" in message or "not yet valid" in message:
        return "check this machine's clock, and renew Stoker's certificate"
    if "mismatch" in message or "not valid for" in message:
        return "use a name of the certificate in the URL: stoker-agent config set url URL"
    return "trust the site's CA: stoker-agent config set ca_file FILE"


def _check_http(config: Config) -> Iterator[Check]:
    try:
        answer = call_once(config._replace(key=""), "GET", "/agent/v1/install", seconds=_SECONDS)
    except Unreachable as error:
        yield Check("http", FAILURE, str(error), "check the URL, and proxies in front of Stoker")
        return
    if answer.status != 200:
        yield Check("http", FAILURE, f"the answer is {answer.status}", "the URL is not Stoker's: check it")
        return
    yield Check("http", OK, "Stoker answers")
    date = email.utils.parsedate_tz(answer.headers.get("date", ""))
    if date is None:
        yield Check("clock", SKIPPED, "the answer has no date")
        return
    skew = time.time() - email.utils.mktime_tz(date)
    outcome = FAILURE if abs(skew) > _LARGE_SKEW_SECONDS else WARNING if abs(skew) > _SKEW_SECONDS else OK
    remedy = "" if outcome == OK else "synchronize the clocks (chrony, systemd-timesyncd)"
    yield Check("clock", outcome, f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} Stoker's", remedy)


def _check_key(config: Config) -> Iterator[Check]:
    if not config.key:
        yield Check("key", SKIPPED, "not enrolled")
        return
    try:
        answer = call_once(config, "GET", "/agent/v1/approval?wait=0", seconds=_SECONDS)
    except Unreachable as error:
        yield Check("key", FAILURE, str(error), "try again")
        return
    if answer.status in (401, 403):
        remedy = "was this server deleted, or enrolled again elsewhere? enroll it again: stoker server enroll NAME"
        yield Check("key", FAILURE, "Stoker refuses this agent's key", remedy)
        return
    yield Check("key", OK, f"accepted, server {config.server_id}")


def _check_document(config: Config) -> Check:
    try:
        answer = call_once(config, "GET", "/agent/v1/document?wait=0", seconds=_SECONDS)
        count = len(answer.json()["deployments"])
    except (Unreachable, ValueError, KeyError, TypeError) as error:
        return Check("document", FAILURE, f"cannot read the document: {error}", "see Stoker's log")
    return Check("document", OK, f"{count} runs to do")
