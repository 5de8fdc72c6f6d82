"""``stoker-agent config``: shows and changes the settings of ``agent.json``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Dict, Optional

from stoker_agent import proxy
from stoker_agent.config import Config, Paths, Unusable, keep, read

_NAMES = ("url", "ca_file", "proxy", "no_proxy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("action", choices=("show", "set", "unset"))
    parser.add_argument("name", nargs="?", choices=_NAMES, help=", ".join(_NAMES))
    parser.add_argument(
        "value", nargs="?", help="- for standard input; a CA file may be a directory; an empty proxy is no proxy"
    )


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Show or change settings. Raises Unusable."""
    config = read(paths.config)
    if options.action == "show":
        for name in _NAMES:
            print(f"{name:<10}{_show(config, name)}")
        return 0
    if options.name is None or (options.action == "set") != (options.value is not None):
        raise Unusable(f"this command is `config {options.action} NAME{' VALUE' if options.action == 'set' else ''}`")
    change: Dict[str, Any] = {options.name: _parse(options.name, options.value)}
    keep(paths.config, config._replace(**change))
    print("restart the agent to use the change (systemctl restart stoker-agent)")
    return 0


def _parse(name: str, value: Optional[str]) -> Optional[str]:
    """Return the value of a setting. Raises Unusable."""
    if value is None:
        if name == "url":
            raise Unusable("an enrolled agent needs a URL")
        return None
    if name == "proxy" and "@" in value:
        raise Unusable(
            "every user of this machine can read a password on a command line: give the URL on standard input"
            " (stoker-agent config set proxy - < FILE)"
        )
    value = sys.stdin.readline().strip() if value == "-" else value
    if name == "proxy" and value:
        proxy.parse(value)
    if name == "url" and not value.startswith(("http://", "https://")):
        raise Unusable(f"the URL must begin with http:// or https://, not {value!r}")
    if name == "ca_file":
        if not Path(value).exists():
            raise Unusable(f"{value} is not there")
        value = str(Path(value).absolute())
    return value.rstrip("/") if name == "url" else value


def _show(config: Config, name: str) -> str:
    value = getattr(config, name)
    if value is None:
        return "-"
    return proxy.describe(value) if name == "proxy" and value else str(value)
