"""Serves Keystone's public application on loopback. Executed by Keystone's Python, not by the test suite."""

from __future__ import annotations

import os
import sys
import threading
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None: ...


def main(folder: str, port: int) -> None:
    os.environ["OS_KEYSTONE_CONFIG_DIR"] = folder
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = f"{folder}/keystone.conf"
    sys.argv = ["keystone"]  # otherwise it would parse this program's arguments
    from keystone.server.wsgi import initialize_public_application

    application, lock = initialize_public_application(), threading.Lock()

    def serialized(environment: Any, start_response: Any) -> list[bytes]:
        """Serve one request at a time, because Keystone does not retry when SQLite reports a locked database."""
        with lock:
            return list(application(environment, start_response))

    with make_server("127.0.0.1", port, serialized, _Server, _Quiet) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
