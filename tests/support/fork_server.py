"""
Forks processes from a process that has imported their program, because imports dominate the start of a process.

Arguments are the name of the program and the number of an inherited socket. Each message on the socket is a request in
JSON with the file descriptors of stdin, stdout, stderr and a pipe. The pipe receives two integers: the new process's
id, and at its end the exit code in the convention of subprocess. The end of the socket kills all remaining processes.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

INTEGER = struct.Struct("q")
LONGEST_REQUEST = 1 << 20
#: The module of each program. Its ``main`` takes the arguments.
_MAIN = {"stoker": "stoker_client.cli.main", "openstack": "openstackclient.shell"}
#: Modules that a program imports lazily.
_ALSO = {
    "stoker": (
        "keystoneauth1.loading._plugins.identity.generic",
        "natsort",
        "netrc",
        "rich.live",
        "rich.tree",
        "stoker.commands.login",
        "stoker.commands.serve",
        "stoker.serve",
        "stoker_client.client",
        "stoker_client.clouds",
        "uvicorn.lifespan.off",
        "uvloop",
    ),
    "openstack": ("heatclient.v1.client", "openstack.connection", "osc_lib.clientmanager", "stoker_client.osc.plugin"),
}
#: Packages whose modules a program finds by scanning a folder.
_SCANNED = {
    "stoker": ("stoker.hot.functions", "stoker.resources", "stoker.transports", "stoker.http", "stoker_client.cli"),
    "openstack": ("heatclient.osc", "openstackclient.identity", "openstackclient.common", "openstackclient.object"),
}


def main() -> None:
    program, control = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    _import_program(program)
    request = _serve(control)
    if request is None:
        control.close()
    else:
        _become(program, request)
        _end(_run(importlib.import_module(_MAIN[program]).main))


def _import_program(program: str) -> None:
    # Every command searches the installed packages for extensions, some several times.
    importlib.metadata.entry_points = importlib.metadata.entry_points().select
    for name in (_MAIN[program], *_ALSO[program]):
        importlib.import_module(name)
    for name in _SCANNED[program]:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    if program == "stoker":
        importlib.import_module("cheap_hashes").apply()  # the folder of this program is its path
    assert threading.active_count() == 1
    gc.freeze()


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Serve requests until the other end closes. Return the request in each new process."""
    wakeup, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pipes: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([control, wakeup], [], [])
        if wakeup in readable:
            os.read(wakeup, 4096)
            _report_ended(pipes)
        if control in readable:
            message, descriptors, _, _ = socket.recv_fds(control, LONGEST_REQUEST, 4)
            if not message:
                break
            *streams, pipe = descriptors
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for number, descriptor in enumerate(streams):
                    os.dup2(descriptor, number)
                control.detach()
                os.closerange(3, max(descriptors[-1], wakeup, waker, *pipes.values(), 64) + 1)
                return dict(json.loads(message))
            for descriptor in streams:
                os.close(descriptor)
            pipes[pid] = pipe
            _write(pipe, pid)
    for pid in pipes:
        os.kill(pid, signal.SIGKILL)
    return None


def _report_ended(pipes: dict[int, int]) -> None:
    while pipes:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        pipe = pipes.pop(pid)
        _write(pipe, os.waitstatus_to_exitcode(status))
        os.close(pipe)


def _write(pipe: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # no process waits for this one
        os.write(pipe, INTEGER.pack(number))


def _become(program: str, request: dict[str, Any]) -> None:
    """Restore the state of a process that a shell has started."""
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    # On import, the module computes the folders of the user's clouds.yaml.
    importlib.reload(sys.modules["openstack.config.loader"])
    sys.argv = [program, *request["words"]]
    # The same objects write to the new descriptors, because modules may have bound them on import.
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    sys.stderr.reconfigure(errors="backslashreplace", line_buffering=True)


def _run(main: Callable[[list[str]], Any]) -> int:
    """Call ``main`` and return the exit code. Only the interpreter reports an exception, as it ends."""
    try:
        code = main(sys.argv[1:])
    except SystemExit as error:
        code = error.code
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _end(code: int) -> NoReturn:
    """
    End the process as the interpreter does, but without deleting all modules: they are shared with the fork server, and
    to write to them would copy their memory.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads and calls their exit handlers
    atexit._run_exitfuncs()
    gc.collect()  # warns of resources that the program has not closed
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
