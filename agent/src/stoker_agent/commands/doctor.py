"""``stoker-agent doctor``: checks everything that the agent needs, with a remedy for what is missing."""

from __future__ import annotations

import argparse
import email.utils
import http.client
import json
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from stoker_agent import proxy
from stoker_agent.config import Config, Paths, Unusable, read
from stoker_agent.enrollment import read_invitation
from stoker_agent.machine import is_copy
from stoker_agent.programs import FOLDERS, list_tools
from stoker_agent.proxy import find_proxy
from stoker_agent.service import find_process, has_systemd
from stoker_agent.web import Place, Unreachable, call_once, create_connection, create_context

OK, WARNING, FAILURE, SKIPPED = "ok", "warn", "FAIL", "skip"
_LEAST_BYTES, _FEW_BYTES = 16 * 1024 * 1024, 200 * 1024 * 1024
_LEAST_INODES, _FEW_INODES = 100, 2000
_ROOT_ONLY = 0o077
_SECONDS = 10.0
_SKEW_SECONDS, _LARGE_SKEW_SECONDS = 30.0, 300.0
_EXPIRY_DAYS = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--url", help="Stoker's URL, on a machine that is not enrolled")
    parser.add_argument("--ca-file", help="certificates to trust, on a machine that is not enrolled")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Print one line for each check, and return 1 if a check fails."""
    has_failed = False
    results = []
    for check in _check_all(options, paths):
        has_failed = has_failed or check.outcome == FAILURE
        if options.json:
            results.append(check._asdict())
        else:
            remedy = f" -> {check.remedy}" if check.remedy else ""
            print(f"{check.outcome:<5}{check.name:<10}{check.text}{remedy}", flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return int(has_failed)


def _check_all(options: argparse.Namespace, paths: Paths) -> Iterator[Check]:
    yield Check("python", OK, f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})")
    config, running = None, find_process(paths) is not None
    try:
        if paths.config.exists():
            config = read(paths.config)
            proxy.configure(config.proxy, config.no_proxy)
            yield Check("enrolled", OK, f"server {config.server_id} at {config.url}")
            if is_copy(paths.state):
                remedy = "enroll this machine, or, if it is the same machine: stoker-agent enroll --same-machine"
                yield Check("enrolled", FAILURE, "the enrollment was copied from another machine", remedy)
        elif (invitation := read_invitation(paths)) is not None:
            config = Config(invitation.url, "", "", invitation.ca_file, proxy=invitation.proxy)
            proxy.configure(config.proxy, config.no_proxy)
            text = f"not yet: this machine, or each machine of this image, enrolls at {invitation.url}"
            remedy = "it enrolls when its agent starts first: systemctl start stoker-agent, or: stoker-agent run"
            yield Check("enrolled", SKIPPED, text, remedy)
        else:
            remedy = (
                "run `stoker server enroll NAME` at Stoker, and its line here; for an image,"
                " `stoker server enroll --many`, and `stoker-agent enroll --at-boot` here"
            )
            yield Check("enrolled", SKIPPED, "this machine is not enrolled", remedy)
    except (Unusable, OSError) as error:
        yield Check("enrolled", FAILURE, str(error), "enroll this machine again")
    yield from _check_files(paths, config)
    if options.url:
        config = (config or Config("", "", ""))._replace(url=options.url.rstrip("/"))
    if options.ca_file and config is not None:
        config = config._replace(ca_file=options.ca_file)
    if config is None:
        yield Check("network", SKIPPED, "there is no URL to check", "add --url URL")
    else:
        yield from _check_network(config, is_running=running)
    yield from _check_hooks(paths)
    yield from _check_disk(paths)
    yield from _check_service(options.root, is_running=running)


class Check(NamedTuple):
    """The outcome of one check."""

    name: str
    outcome: str
    text: str
    #: What to do, if the check is not ok.
    remedy: str = ""


def _check_files(paths: Paths, config: Optional[Config]) -> Iterator[Check]:
    """Check that the agent can use its files, and that no other user can read the secret ones."""
    for path in (paths.config, paths.sources, paths.document_key):
        if path.exists():
            yield _check_secret(path)
    for folder in (paths.state, paths.logs):
        if not folder.exists():
            yield Check("files", WARNING, f"{folder} does not exist", "the agent creates it when it starts")
        elif not os.access(str(folder), os.W_OK | os.X_OK):
            yield Check(
                "files", FAILURE, f"cannot write to {folder}", f"run this as the agent's user, or chown {folder}"
            )
        else:
            yield Check("files", OK, f"{folder} is writable")
    if config is not None and config.ca_file and not os.access(config.ca_file, os.R_OK):
        remedy = "copy the site's CA certificate there, or `stoker-agent config set ca_file FILE`"
        yield Check("files", FAILURE, f"cannot read the CA file {config.ca_file}", remedy)


def _check_secret(path: Path) -> Check:
    mode = stat.S_IMODE(path.stat().st_mode)
    if not os.access(str(path), os.R_OK):
        return Check("files", FAILURE, f"cannot read {path}", "run this as root or as the agent's user")
    if mode & _ROOT_ONLY:
        return Check("files", FAILURE, f"others can read {path} (mode {mode:04o})", f"chmod 600 {path}")
    return Check("files", OK, f"{path} is private")


def _check_hooks(paths: Paths) -> Iterator[Check]:
    """Check the installed hooks, and name the tools of built-in hooks that are missing."""
    for folder in (paths.hooks, *FOLDERS):
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            if path.is_file() and not path.name.startswith("."):
                yield _check_hook(path)
    present: List[str] = []
    absent: List[str] = []
    for group, names in sorted(list_tools().items()):
        (present if any(shutil.which(name) for name in names) else absent).append(f"{group} ({' or '.join(names)})")
    yield Check("tools", OK, f"for {', '.join(present) or 'no hook'}")
    if absent:
        yield Check(
            "tools", SKIPPED, f"not installed, for {', '.join(absent)}", "only configs of these groups need them"
        )


def _check_hook(path: Path) -> Check:
    if not os.access(str(path), os.X_OK):
        return Check("hooks", FAILURE, f"{path} is not executable", f"chmod 755 {path}")
    if path.stat().st_mode & stat.S_IWOTH:
        return Check("hooks", FAILURE, f"everybody can write to {path}", f"chmod o-w {path}")
    return Check("hooks", OK, f"{path} is executable")


def _check_disk(paths: Paths) -> Iterator[Check]:
    folder = next(path for path in (paths.state, *paths.state.parents) if path.exists())
    values = os.statvfs(str(folder))
    remedy = f"free space on the file system of {folder}: without space, no run starts"
    for free, least, few, text in (
        (values.f_bavail * values.f_frsize, _LEAST_BYTES, _FEW_BYTES, "{:,} bytes are free"),
        # some file systems have no fixed number of inodes, and report 0
        (values.f_favail if values.f_files else _FEW_INODES, _LEAST_INODES, _FEW_INODES, "{:,} inodes are free"),
    ):
        outcome = FAILURE if free < least else WARNING if free < few else OK
        yield Check("disk", outcome, f"{text.format(free)} for {folder}", "" if outcome == OK else remedy)


def _check_service(root: Optional[str], *, is_running: bool) -> Iterator[Check]:
    """Check that the agent runs, and that systemd starts it at boot."""
    start = "systemctl start stoker-agent, or: stoker-agent run"
    yield Check("agent", OK, "runs") if is_running else Check("agent", FAILURE, "does not run", start)
    if root:
        yield Check("service", SKIPPED, "an agent with its own root is not a service of the system")
        return
    if not has_systemd(root):
        yield Check("service", SKIPPED, "this machine has no systemd")
        return
    for verb, good in (("is-active", "active"), ("is-enabled", "enabled")):
        words: List[str] = ["systemctl", verb, "stoker-agent.service"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        state = done.stdout.strip() or done.stderr.strip()
        if state == good:
            yield Check("service", OK, f"stoker-agent.service is {state}")
        else:
            remedy = "systemctl enable --now stoker-agent; journalctl -u stoker-agent"
            yield Check("service", FAILURE, f"stoker-agent.service is {state}", remedy)


def _check_network(config: Config, *, is_running: bool) -> Iterator[Check]:
    """Check each step to Stoker. The first failure ends the checks, because the others depend on it."""
    parts = urllib.parse.urlsplit(config.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Check("url", FAILURE, f"{config.url} is no URL of HTTP", "stoker-agent config set url URL")
        return
    target = parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
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


def _check_route(target: Place) -> Iterator[Check]:
    proxy = find_proxy(*target[:2])
    host, port = (proxy.host, proxy.port) if proxy else target[1:]
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


def _check_tls(target: Place, config: Config) -> Iterator[Check]:
    if target[0] == "http":
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


def _read_expiry(target: Place, context: ssl.SSLContext) -> Optional[float]:
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
