"""Run by the Python that has Keystone, not by the suite: its public application on a port of this machine."""

from __future__ import annotations

import os
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None: ...


def main(folder: str, port: int) -> None:
    os.environ["OS_KEYSTONE_CONFIG_DIR"] = folder
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = f"{folder}/keystone.conf"
    sys.argv = ["keystone"]  # it would read our own arguments
    from keystone.server.wsgi import initialize_public_application

    application = initialize_public_application()
    with make_server("127.0.0.1", port, application, _Server, _Quiet) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
