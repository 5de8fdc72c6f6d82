"""Show the main job: start Stoker, run example stacks on local servers, print what came of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

#: Exists in a source tree only; an installed Stoker does not include the examples.
EXAMPLES = Path(__file__).parents[3] / "examples"
_STACKS = ("two-deployments", "three-tier")
_STOKER = [sys.executable, "-m", "stoker_client.cli.main"]


@click.command("demo")
@click.option("--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="Where the example templates are.")
def demo(examples: Path) -> None:
    """Start Stoker in a temporary directory, create two stacks on local servers, print their outputs."""
    missing = [name for name in _STACKS if not examples.joinpath(f"{name}.yaml").exists()]
    if missing:
        raise click.ClickException(f"{missing[0]}.yaml is not in {examples}: give --examples DIR")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stoker-demo-") as folder, _serve(Path(folder)) as environment:
        for name in _STACKS:
            _show(name, examples / f"{name}.yaml", environment)
    click.echo(f"\nAll of it took {time.monotonic() - began:.1f} s.")


def _show(name: str, template: Path, environment: Mapping[str, str]) -> None:
    click.secho(f"\n$ stoker stack create {name} -t examples/{template.name} --wait", bold=True)
    began = time.monotonic()
    created = subprocess.run(
        [*_STOKER, "stack", "create", name, "-t", str(template), "--wait"], env=environment, check=False
    )
    took = time.monotonic() - began
    if created.returncode:
        raise click.ClickException(f"the stack {name} failed")
    click.echo(f"{name} is complete after {took:.2f} s")


@contextmanager
def _serve(folder: Path) -> Iterator[Mapping[str, str]]:
    """A Stoker of its own; what the shell needs to reach it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_"))}
    flags = ["--port", str(port), "--state-dir", str(folder), "--local-servers-unsafe", "--no-clouds-yaml"]
    with folder.joinpath("serve.out").open("wb") as output:
        process = subprocess.Popen([*_STOKER, "serve", *flags], env=mine, stdout=output, stderr=output)
    try:
        _until_healthy(f"http://127.0.0.1:{port}/healthz", process, folder / "serve.out")
        exports = subprocess.run(
            [*_STOKER, "env", "--state-dir", str(folder)], env=mine, check=True, capture_output=True, text=True
        )
        yield {**mine, **_variables(exports.stdout)}
    finally:
        _delete_stacks(folder, mine, process)


def _delete_stacks(folder: Path, environment: Mapping[str, str], process: subprocess.Popen[bytes]) -> None:
    """The examples leave real daemons on this machine: end them with their servers."""
    if process.poll() is None:
        exports = subprocess.run(
            [*_STOKER, "env", "--state-dir", str(folder)], env=environment, check=False, capture_output=True, text=True
        )
        subprocess.run(
            [*_STOKER, "stack", "delete", *_STACKS, "--yes", "--wait"],
            env={**environment, **_variables(exports.stdout)},
            check=False,
            capture_output=True,
        )
        until = time.monotonic() + 10
        while any(folder.joinpath("local").glob("*")) and time.monotonic() < until:
            time.sleep(0.05)
        process.terminate()
    process.wait(timeout=30)


def _until_healthy(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()  # noqa: S310 — our own loopback address
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise click.ClickException(f"Stoker did not start: {output.read_text()[-500:]}") from None
            time.sleep(0.05)
        else:
            return


def _variables(exports: str) -> dict[str, str]:
    words = [line.removeprefix("export ").partition("=") for line in exports.splitlines()]
    return {name: value.strip("'") for name, _, value in words}
