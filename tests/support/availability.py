"""
Measures the effect of an attack on other clients: the latency of GET /healthz, and the server's memory.

A probe process alternates requests to the server and to a trivial control server. A busy machine delays both, an attack
only the former, so the limit is the worst latency of the control plus the 250 ms that the project guarantees. The time
for which the kernel lets the server's threads or the probe wait for a processor does not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.server import Served

#: Seconds that another client's GET /healthz may take during an attack.
HEALTHZ_BAR = 0.25
#: Bytes by which the server may grow.
MEMORY_BAR = 100 * 1024 * 1024
#: The probe's own address, so that limits per address affect only the attacker.
PROBE_ADDRESS = "127.0.0.2"
_TRIES = 3
_PATIENCE = 60.0

_PROBE = """
import contextlib, glob, http.client, json, os, select, socket, sys, time
port, source, server = int(sys.argv[1]), sys.argv[2], sys.argv[3]
listener = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:  # the control: answers everything at once
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
control = listener.getsockname()[1]
listener.close()

def ask(port):
    begin = time.monotonic()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(source, 0))
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
        connection.close()
    except OSError as error:
        status = type(error).__name__
    return time.monotonic() - begin, status

def waits():  # seconds for which the server's threads and this process have waited for a processor
    files = [*glob.glob(f"/proc/{server}/task/*/schedstat"), "/proc/self/schedstat"]
    found = {}
    for file in files:
        with contextlib.suppress(OSError):  # a thread has ended
            found[file] = int(open(file).read().split()[1]) / 1e9
    return found

def ask_server():
    before = waits()
    seconds, status = ask(port)
    waited = sum(wait - before.get(file, 0.0) for file, wait in waits().items())
    return max(0.0, seconds - waited), status

served, controls = [], []
print("ready", flush=True)
is_over = False
while not is_over:  # once more after the end
    is_over = bool(select.select([sys.stdin], [], [], 0.02)[0])
    controls.append(ask(control)[0])
    served.append(ask_server())
print(json.dumps({"served": served, "controls": controls}), flush=True)
os.killpg(0, 9)
""".replace("PATIENCE", str(_PATIENCE))


def memory(pid: int, field: str) -> int:
    """Return the bytes in a line of /proc/PID/status, such as VmRSS or VmHWM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {field} in /proc/{pid}/status")


def reset_memory(pid: int) -> int:
    """Let the highest memory of a process, VmHWM, be the present one, and return it."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return memory(pid, "VmHWM")


@contextmanager
def _probe(server: Served) -> Iterator[list[str]]:
    """Probe ``server`` during the block. Afterwards, the list has a sentence for each exceeded limit."""
    assert server.process is not None
    complaints: list[str] = []
    command = [sys.executable, "-c", _PROBE, str(server.port), PROBE_ADDRESS, str(server.process.pid)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None
        assert probe.stdout.readline() == "ready\n"
        before = reset_memory(server.process.pid)
        try:
            yield complaints
        finally:
            probe.stdin.write("stop\n")
            probe.stdin.flush()
            measured = json.loads(probe.stdout.readline())
            probe.wait(timeout=_PATIENCE)
    growth = memory(server.process.pid, "VmHWM") - before
    worst, control = max(seconds for seconds, _ in measured["served"]), max(measured["controls"])
    failures = [status for _, status in measured["served"] if status != 200]
    if failures:
        complaints.append(f"{len(failures)} of {len(measured['served'])} probes failed: {failures[:3]}")
    if worst > HEALTHZ_BAR + control:
        complaints.append(f"GET /healthz took {worst:.2f} s (control: {control:.2f} s)")
    if growth > MEMORY_BAR:
        complaints.append(f"the server grew by {growth / 1024 / 1024:.0f} MiB")


def assert_harmless(server: Served, attack: Callable[[], object]) -> None:
    """
    Run ``attack`` and assert the limits on /healthz and memory.

    On a busy machine, the latency is measured up to three times; memory is compared with the value before the first
    try, too.
    """
    assert server.process is not None
    start = memory(server.process.pid, "VmRSS")
    for _ in range(_TRIES):
        with _probe(server) as complaints:
            attack()
        grown = memory(server.process.pid, "VmRSS") - start
        if grown > MEMORY_BAR:
            complaints.append(f"the server has grown by {grown / 1024 / 1024:.0f} MiB")
        if not complaints:
            return
    raise AssertionError("; ".join(complaints))


def assert_ends(server: Served) -> None:
    """Assert that SIGTERM ends the process, and start it again."""
    assert server.stop() == 0
    server.restart()
