"""A real Heat to measure beside, started by a script of its own, with what a server's CFN polls need of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.api import Api, variables
from bench.cases import Target

#: Starts a real Heat and prints its OS_* variables and the pids to charge.
HEAT = Path(os.environ.get("STOKER_BENCH_HEAT", "../shared/bench/start-heat.sh"))

#: What that script's configuration leaves out, as environment variables: oslo.config takes them before the files, and
#: the processes of the script inherit them. One that is set already when the benchmark starts is left as it is.
CONFIGURATION = {
    # Since CVE-2025-65073 Keystone checks EC2 signatures only for an authenticated service (or an admin), so that
    # Heat's CFN face needs credentials to ask with: those of the user that the script makes.
    # Without them it answers 500.
    "OS_EC2AUTHTOKEN__AUTH_TYPE": "password",
    "OS_EC2AUTHTOKEN__AUTH_URL": "http://127.0.0.1:5000/v3",
    "OS_EC2AUTHTOKEN__USERNAME": "heat",
    "OS_EC2AUTHTOKEN__PASSWORD": "heat",
    "OS_EC2AUTHTOKEN__USER_DOMAIN_NAME": "Default",
    "OS_EC2AUTHTOKEN__PROJECT_NAME": "service",
    "OS_EC2AUTHTOKEN__PROJECT_DOMAIN_NAME": "Default",
    # Heat appends /v3/ec2tokens to what it finds, and the catalog's URL has its /v3 already.
    "OS_EC2AUTHTOKEN__ENDPOINT_OVERRIDE": "http://127.0.0.1:5000",
    # Keystone in production has a cache. Without one each of these polls costs twenty times as much, which would
    # flatter Stoker; in the memory of its one process is the cheapest there is.
    "OS_CACHE__ENABLED": "true",
    "OS_CACHE__BACKEND": "dogpile.cache.memory",
}
#: By default Heat 27 asks of this call that the token's project is that of the target, and its CFN face names no
#: target: every server is told 403, "Action DescribeStackResource not allowed for user". The role that Heat gives the
#: users of its servers is enough here, as it is in its older defaults.
POLICY = '{"cloudformation:DescribeStackResource": "role:heat_stack_user"}\n'


@contextmanager
def heat() -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="stoker-bench-heat-") as folder:
        policy = Path(folder) / "policy.yaml"
        policy.write_text(POLICY)
        environment = {"OS_OSLO_POLICY__POLICY_FILE": str(policy), **CONFIGURATION, **os.environ}
        started = subprocess.run(["bash", str(HEAT)], check=True, capture_output=True, text=True, env=environment)
        pids = next(line for line in started.stdout.splitlines() if line.startswith("pids:"))
        mine = tuple(int(pid) for pid in pids.split(":")[1].split(","))
        try:
            yield Target(Api(variables(started.stdout)), mine)
        finally:
            stop(mine[:-2])  # the last two are the database and the message broker, which were there before


def stop(pids: tuple[int, ...], limit: float = 60) -> None:
    """Ask them to end and wait until they have: the next run needs their ports."""
    until = time.monotonic() + limit
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.2)


def heat_is_missing() -> str | None:
    if not HEAT.exists():
        return f"{HEAT} is not there: set STOKER_BENCH_HEAT to a script that starts Heat"
    for name, port in (("MariaDB", 3306), ("RabbitMQ", 5672)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return f"Heat needs {name} on 127.0.0.1:{port}, and nothing answers there"
    return None
