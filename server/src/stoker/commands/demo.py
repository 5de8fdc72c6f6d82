"""Start Stoker, create example stacks on local servers and print their outputs."""

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

from stoker.http.console import assets

_STACKS = ("two-deployments", "three-tier")
_STOKER = [sys.executable, "-m", "stoker_client.cli.main"]


@click.command("demo")
def demo() -> None:
    """Start Stoker in a temporary directory, create two example stacks on local servers, print their outputs."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stoker-demo-") as folder, _serve(Path(folder, "state")) as environment:
        examples = Path(folder, "examples")
        subprocess.run([*_STOKER, "examples", str(examples)], env=environment, check=True, stdout=subprocess.DEVNULL)
        for name in _STACKS:
            _create_stack(name, examples / f"{name}.yaml", environment)
        click.echo(f"\nThe demo took {time.monotonic() - began:.1f} s. `stoker examples` writes the templates.")
        _show_console(environment)


def _show_console(environment: Mapping[str, str]) -> None:
    """Print the URL of the console, and wait for a key if somebody sits at the terminal."""
    if assets.page() is None:
        return
    url = environment["OS_AUTH_URL"].partition("/identity")[0]
    login = f"user {environment['OS_USERNAME']}, password {environment['OS_PASSWORD']}"
    click.echo(f"\nThe console: {url}/console/ ({login})")
    if sys.stdin.isatty() and sys.stdout.isatty():
        subprocess.run([*_STOKER, "console"], env=environment, check=False)
        click.pause("Press any key to end the demo.")
    else:
        click.echo("The demo waits for a key only on a terminal. `stoker serve` starts a service that stays.")


def _create_stack(name: str, template: Path, environment: Mapping[str, str]) -> None:
    click.secho(f"\n$ stoker stack create {name} -t examples/{template.name} --wait", bold=True)
    began = time.monotonic()
    command = [*_STOKER, "stack", "create", name, "-t", str(template), "--wait"]
    if subprocess.run(command, env=environment, check=False).returncode:
        raise click.ClickException(f"the stack {name} failed")
    click.echo(f"{name} is complete after {time.monotonic() - began:.2f} s")


@contextmanager
def _serve(folder: Path) -> Iterator[Mapping[str, str]]:
    """Start a Stoker with the state directory ``folder``; yields the environment variables of its clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_"))}
    flags = ["--port", str(port), "--state-dir", str(folder), "--local-servers-unsafe", "--no-clouds-yaml"]
    with folder.with_suffix(".out").open("wb") as output:
        process = subprocess.Popen([*_STOKER, "serve", *flags], env=environment, stdout=output, stderr=output)
    try:
        _until_healthy(f"http://127.0.0.1:{port}/healthz", process, folder.with_suffix(".out"))
        yield _login(folder, environment)
    finally:
        _delete_stacks(folder, environment, process)


def _delete_stacks(folder: Path, environment: Mapping[str, str], process: subprocess.Popen[bytes]) -> None:
    """Delete the stacks, so that the daemons that their scripts started end with their servers."""
    if process.poll() is None:
        subprocess.run(
            [*_STOKER, "stack", "delete", *_STACKS, "--yes", "--wait"],
            env=_login(folder, environment),
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


def _login(folder: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of a client that is logged in; without a login if Stoker has not started."""
    command = [*_STOKER, "env", "--state-dir", str(folder)]
    exports = subprocess.run(command, env=environment, check=False, capture_output=True, text=True).stdout
    words = [line.removeprefix("export ").partition("=") for line in exports.splitlines()]
    return {**environment, **{name: value.strip("'") for name, _, value in words}}
