"""The environment of a run: a fixed set of variables, with nothing of the agent's own such as tokens."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path
from typing import Any, Dict, Mapping

from stoker_agent.hook_contract import HookError, as_text

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Variables of the agent that runs receive, in addition to ``HEAT_*``, the settings of heat-agents' hooks.
#: ``STOKER_LOCAL_SERVER`` marks the processes of a local server, which end with it.
_PASSED = ("LANG", "LC_ALL", "TZ", "TMPDIR", "STOKER_LOCAL_SERVER")
_PROXY = re.compile(r"(?i)(https?|ftp|all|no)_proxy")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def own_account() -> pwd.struct_passwd:
    """Return the account of the agent; a user without a name has its number as the name."""
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        return pwd.struct_passwd((str(os.geteuid()), "", os.geteuid(), os.getegid(), "", "/", ""))


def base(account: pwd.struct_passwd, own: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables of every run of the user ``account``. ``own`` is the environment of the agent."""
    is_own = account.pw_uid == os.geteuid()
    passed = {
        name: value
        for name, value in own.items()
        if name in _PASSED or name.startswith("HEAT_") or _PROXY.fullmatch(name)
    }
    return {
        "LANG": "C.UTF-8",
        "PATH": own.get("PATH") or _PATH,
        "HOME": (own.get("HOME") if is_own else None) or account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
        "TERM": "dumb",
        **passed,
    }


def read_file(path: Path) -> Dict[str, str]:
    """
    Return the variables of a file with lines ``NAME=value``; values may be quoted. Empty if there is no file.

    Lines that are empty, begin with ``#`` or have no valid name are ignored. Raises OSError.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return {}
    variables = {}
    for line in lines:
        name, equals, value = line.strip().partition("=")
        if equals and _NAME.fullmatch(name) and "\0" not in value:
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            variables[name] = value[1:-1] if quoted else value
    return variables


def from_option(option: Any) -> Dict[str, str]:
    """Return the variables of a config's option ``environment``. Raises HookError."""
    if option is None:
        return {}
    if not isinstance(option, dict):
        raise HookError("The option environment must be a map of variables")
    for name, value in option.items():
        if not _NAME.fullmatch(name) or "\0" in as_text(value):
            raise HookError(f"The option environment cannot set the variable {name!r}")
    return {name: as_text(value) for name, value in option.items()}
