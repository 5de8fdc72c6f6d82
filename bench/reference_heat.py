"""A real Heat as a reference. A separate script starts it; this module adds the settings for CFN polls."""

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

#: The script that starts Heat, and prints its OS_* variables and the process ids to measure.
HEAT = Path(os.environ.get("STOKER_BENCH_HEAT", "../shared/bench/start-heat.sh"))

#: Settings that the script's configuration lacks, as environment variables. oslo.config prefers them to files, and the
#: script's processes inherit them. Variables that are already set are not changed.
CONFIGURATION = {
    # Since CVE-2025-65073, Keystone verifies EC2 signatures only for an authenticated service or an admin. Heat's CFN
    # API therefore needs credentials: those of the user that the script creates. Without them it answers 500.
    "OS_EC2AUTHTOKEN__AUTH_TYPE": "password",
    "OS_EC2AUTHTOKEN__AUTH_URL": "http://127.0.0.1:5000/v3",
    "OS_EC2AUTHTOKEN__USERNAME": "heat",
    "OS_EC2AUTHTOKEN__PASSWORD": "heat",
    "OS_EC2AUTHTOKEN__USER_DOMAIN_NAME": "Default",
    "OS_EC2AUTHTOKEN__PROJECT_NAME": "service",
    "OS_EC2AUTHTOKEN__PROJECT_DOMAIN_NAME": "Default",
    # Heat appends /v3/ec2tokens to the URL, but the catalog's URL already ends with /v3.
    "OS_EC2AUTHTOKEN__ENDPOINT_OVERRIDE": "http://127.0.0.1:5000",
    # Keystone in production has a cache. Without a cache, each poll costs twenty times as much, which would favor
    # Stoker. The memory of its only process is the fastest cache.
    "OS_CACHE__ENABLED": "true",
    "OS_CACHE__BACKEND": "dogpile.cache.memory",
}
#: By default, Heat 27 requires for this call that the token's project equals the target's project, and its CFN API
#: states no target: every server receives 403, "Action DescribeStackResource not allowed for user". As in Heat's older
#: defaults, the role that Heat gives to servers' users suffices here.
POLICY = '{"cloudformation:DescribeStackResource": "role:heat_stack_user"}\n'


@contextmanager
def heat() -> Iterator[Target]:
    """Yield a running Heat with these settings."""
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
            stop(mine[:-2])  # the last two are the database and the message broker, which were already running


def stop(pids: tuple[int, ...], limit: float = 60) -> None:
    """Terminate the processes and wait for their end, because the next run needs their ports."""
    until = time.monotonic() + limit
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.2)


def heat_is_missing() -> str | None:
    """Return the reason why Heat cannot start, or None."""
    if not HEAT.exists():
        return f"{HEAT} is not there: set STOKER_BENCH_HEAT to a script that starts Heat"
    for name, port in (("MariaDB", 3306), ("RabbitMQ", 5672)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return f"Heat needs {name} on 127.0.0.1:{port}, and nothing answers there"
    return None
