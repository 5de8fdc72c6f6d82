"""A pgbouncer in transaction mode in front of a PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from support import waiting
from support.databases import missing
from support.own_postgresql import OwnPostgresql
from support.ports import free_port
from support.processes import running

#: Few sessions for many clients, so that each transaction gets another session.
_SETTINGS = """\
[databases]
* = host=127.0.0.1 port={target} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 3
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pgbouncer(server: OwnPostgresql, mode: str = "transaction") -> Iterator[str]:
    """Yield the URL of the server's database ``postgres`` through a pgbouncer."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/bin:/usr/bin")
    if program is None:
        missing("pgbouncer is not installed: run `apt-get install pgbouncer`")
    folder, port = Path(tempfile.mkdtemp(prefix="stoker-test-pgbouncer-")), free_port()
    try:
        file = folder / "pgbouncer.ini"
        file.write_text(_SETTINGS.format(target=server.port, port=port, mode=mode))
        if os.getuid() == 0:  # pgbouncer refuses to run as root
            for path in (folder, file):
                shutil.chown(path, "nobody")
        url = server.url_at(port)
        with folder.joinpath("log").open("wb") as log:
            user = {"user": "nobody", "group": None, "extra_groups": []} if os.getuid() == 0 else {}
            with running([program, str(file)], stdout=log, stderr=subprocess.STDOUT, **user):
                for _ in waiting.attempts(60, folder.joinpath("log").read_text):
                    with contextlib.suppress(psycopg.OperationalError):
                        psycopg.connect(url).close()
                        break
                yield url
    finally:
        shutil.rmtree(folder)
