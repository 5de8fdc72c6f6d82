"""A real `stoker relay run` as a process that can be killed and restarted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.ports import free_port
from support.server import STOKER, Served

METRICS_TOKEN = "the token of the relay's metrics"


@dataclass
class SiteRelay(Served):
    """
    A relay for the Stoker at ``center``. ``request`` calls the relay itself.

    Its ``environment`` is not that of a user: use the central Stoker for commands.
    """

    center: str = ""
    key: str = ""

    def start(self) -> None:
        """Start the process and wait until it answers."""
        key_file = self.folder / "relay.key"
        key_file.write_text(self.key)
        words = ["relay", "run", "--center", self.center, "--key-file", str(key_file), "--port", str(self.port)]
        token_file = self.folder / "metrics.token"
        token_file.write_text(METRICS_TOKEN)
        words += ["--metrics-token-file", str(token_file), *self.flags]
        with self.folder.joinpath("serve.out").open("ab") as output:
            environment = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_"))}
            self.process = subprocess.Popen(
                [*STOKER, *words], env={**environment, **self.variables}, stdout=output, stderr=output
            )
        self._until_healthy()

    def health(self) -> dict[str, Any]:
        """Return what /healthz tells."""
        return dict(self.request("GET", "/healthz").body)

    def metrics(self) -> dict[str, float]:
        """Return the values of /metrics, by name with labels."""
        answer = self.request("GET", "/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
        lines = answer.raw.decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


@contextmanager
def site_relay(
    folder: Path,
    stoker: Served,
    *flags: str,
    center: str = "",
    name: str = "site",
    ca_file: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[SiteRelay]:
    """
    Yield a running relay, which is created at ``stoker`` and reaches it at ``center`` (default: its URL).

    ``ca_file`` is the CA of the relay's certificate, which ``flags`` name. ``variables``: of its environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    body = {"name": name, "url": f"{'https' if ca_file else 'http'}://127.0.0.1:{port}"}
    answer = stoker.heat("POST", "/relays", body)
    assert answer.status == 201, answer.raw
    key = answer.body["relay"]["key"]
    relay = SiteRelay(folder, port, flags, ca_file=ca_file, center=center or stoker.url, key=key)
    relay.variables = variables or {}
    try:
        relay.start()
        yield relay
    finally:
        relay.end()
