"""What the agent and the processes of hooks agree on: modes, variables of the environment, and names of modules."""

from __future__ import annotations

#: The agent names the file for the result in this variable; standard output then carries the tool's output only.
RESULT_FILE = "STOKER_RESULT"
#: What to do: ``apply`` (default), ``check``, ``preview`` or ``undo``.
MODE = "STOKER_HOOK_MODE"
#: The directory whose content a hook keeps between runs.
STATE = "STOKER_HOOK_STATE"
APPLY = "apply"
MODES = (APPLY, "check", "preview", "undo")
#: Exit code of a hook that does not support the mode: EOPNOTSUPP.
UNSUPPORTED = 95


def module_name(group: str) -> str:
    """Return the module of ``stoker_agent.hooks`` for a group: ``docker-cmd`` is in ``docker_cmd``."""
    return group.replace("-", "_")
