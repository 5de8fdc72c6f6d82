"""
The contract of the hooks of this package.

A hook is a module of ``stoker_agent.hooks``. Its function ``apply`` receives a ``HookRun`` and returns a ``Result``.
The tool that it calls writes to the output of the hook's process, which Stoker's agent forwards during the run.
Optional functions: ``check`` (compare without a change), ``preview`` (show what ``apply`` would change) and
``undo`` (remove what ``apply`` made). Optional facts: ``TOOLS``, the programs of which it needs one, ``NEEDS_ROOT``,
``RESUMES``, for a hook whose interrupted run starts again, and ``ALONE``, for one beside which no other run executes.

A hook whose work is one process may define ``command`` as well, which returns the argv and the environment variables of
that process; the agent then starts it without a process of the hook in between.

``main`` runs a hook as a child process of the agent.

Example of a whole hook:

    from stoker_agent.hook_contract import HookRun, Result

    def apply(run: HookRun) -> Result:
        code = run.call(["/bin/sh", "-c", run.text()], run.environment())
        return Result(code, {"length": len(run.text())}, changed=code == 0)
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from stoker_agent import files
from stoker_agent.files import open_trusted
from stoker_agent.hook_memory import Memory

#: The agent names the file for the result in this variable; standard output then carries the tool's output only.
RESULT_FILE = "STOKER_RESULT"
#: What to do: ``apply`` (default), ``check``, ``preview`` or ``undo``.
MODE = "STOKER_HOOK_MODE"
#: The directory whose content a hook keeps between runs.
STATE = "STOKER_HOOK_STATE"
APPLY = "apply"
MODES = (APPLY, "check", "preview", "undo")
#: The modes that must not change the machine.
DRY_MODES = ("check", "preview")
#: Exit code of a hook that does not support the mode: EOPNOTSUPP.
UNSUPPORTED = 95
#: The value of a result that says whether the run changed the machine.
CHANGED = "deploy_changed"
#: The value with which a hook that ``RESUMES`` requests that the agent executes its program again, and then this run.
RESTART = "deploy_restart"

#: Inputs that Heat and Stoker add; no tool receives these as settings of the user.
_DEPLOY = "deploy_"
#: The words of YAML 1.1, in which templates are written, and short ones.
_TRUE, _FALSE = ("true", "t", "yes", "y", "on", "1"), ("false", "f", "no", "n", "off", "0")
#: Largest number of bytes of an output.
_LONGEST = 1024 * 1024
#: Time for the last lines of a tool that has ended. A daemon that it started may keep the pipe open.
_LAST_SECONDS = 5.0
#: Limits of a report's list of changes, because a report has at most 950,000 bytes.
_MOST_CHANGES = 100
_LONGEST_DIFF = 2000


class HookError(Exception):
    """The run cannot begin, or has failed for a reason that no tool printed. ``code`` is the exit code to report."""

    def __init__(self, reason: str, code: int = 1) -> None:
        super().__init__(reason)
        self.code = code


class Change(NamedTuple):
    """What one item of a run (a task, a resource, a package) has changed, or would change."""

    item: str
    #: One of ``changed``, ``failed`` and ``unchanged``.
    outcome: str = "changed"
    #: The difference as text, if the hook knows it.
    diff: str = ""

    def to_report(self) -> Dict[str, str]:
        """Return the change for a signal, without empty members and with a bounded diff."""
        diff = self.diff if len(self.diff) <= _LONGEST_DIFF else self.diff[:_LONGEST_DIFF] + "…"
        return {"item": self.item[:255], "outcome": self.outcome, **({"diff": diff} if diff else {})}


class Result(NamedTuple):
    """
    The result of a run.

    ``code`` is the exit code; 0 is success. ``values`` are values of outputs by name. ``changed`` says whether the run
    changed the machine, or would change it in the modes ``check`` and ``preview``; None if the hook does not know.
    ``changes`` lists the items.
    """

    code: int = 0
    values: Mapping[str, Any] = {}
    changed: Optional[bool] = None
    changes: Sequence[Change] = ()
    reason: str = ""

    @classmethod
    def of(cls, changes: Sequence[Change]) -> "Result":
        """Return the result of a successful run that has made these changes, or of a check that has found them."""
        return cls(changed=bool(changes), changes=changes)

    def to_report(self) -> Dict[str, Any]:
        """Return the result as the values of a signal."""
        report: Dict[str, Any] = {**self.values, "deploy_status_code": self.code}
        if self.changed is not None:
            report[CHANGED] = self.changed
        if self.changes:
            report["deploy_changes"] = [change.to_report() for change in self.changes[:_MOST_CHANGES]]
            if len(self.changes) > _MOST_CHANGES:
                rest = len(self.changes) - _MOST_CHANGES
                report["deploy_changes"].append({"item": f"{rest} more", "outcome": "omitted"})
        if self.reason:
            report["deploy_status_reason"] = self.reason
        return report


@contextlib.contextmanager
def _filter_lines(passes: Callable[[bytes], bool]) -> Iterator[int]:
    """Yield a file descriptor for a tool's output. The lines for which ``passes`` returns True go to this process's."""
    source, target = os.pipe()

    def forward() -> None:
        with os.fdopen(source, "rb") as lines:
            for line in lines:
                if passes(line):
                    sys.stdout.buffer.write(line)
                    sys.stdout.buffer.flush()

    thread = threading.Thread(target=forward, daemon=True)
    thread.start()
    try:
        yield target
    finally:
        os.close(target)
        thread.join(_LAST_SECONDS)


class Commands:
    """Runs the tools of a hook, or of the catalog's steps."""

    #: Whether the last tool of ``call`` has failed.
    has_tool_failed = False

    def call(
        self,
        argv: Sequence[str],
        environment: Optional[Mapping[str, str]] = None,
        *,
        folder: Optional[Path] = None,
        stdin: Optional[str] = None,
        passes: Optional[Callable[[bytes], bool]] = None,
    ) -> int:
        """
        Run a tool, whose output goes directly to the run's output. Return its exit code.

        With ``passes``, only those lines of its standard output for which ``passes`` returns True. Raises HookError,
        with code 127, if there is no such program.
        """
        sys.stdout.flush()
        with contextlib.ExitStack() as pipes:
            target = None if passes is None else pipes.enter_context(_filter_lines(passes))
            code = run_tool(argv, environment, folder, stdin, target).returncode
        self.has_tool_failed = code != 0
        return code

    def read(
        self, argv: Sequence[str], environment: Optional[Mapping[str, str]] = None, *, folder: Optional[Path] = None
    ) -> Tuple[int, str]:
        """Run a tool and return its exit code and its standard output as text. Raises HookError."""
        done = run_tool(argv, environment, folder, None, subprocess.PIPE)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def report_progress(self, percent: Optional[int], message: str = "") -> None:
        """Report progress: a percentage, a message, or both. Best effort."""
        path = os.environ.get("STOKER_PROGRESS")
        if path:
            append_progress(Path(path), percent, message)


class HookRun(Commands):
    """
    One run of a hook.

    ``entry`` is the document's entry: ``id``, ``name``, ``config``, ``options``, ``inputs`` and ``outputs``. The
    directory ``working`` belongs to this run, ``state`` to all runs of the hook; both have mode 0700. Raises HookError
    for an input without a name.
    """

    def __init__(self, entry: Mapping[str, Any], working: Path, state: Path, outputs: Path, mode: str = APPLY) -> None:
        self.entry = entry
        self.id = str(entry["id"])
        self.name = str(entry.get("name") or entry["id"])
        self.config: Any = entry.get("config")
        options = entry.get("options")
        self.options: Mapping[str, Any] = options if isinstance(options, dict) else {}
        self.inputs = _inputs(entry.get("inputs") or ())
        self.working = working
        self.state = state
        #: The output NAME is the content of the file ``<outputs_path>.NAME``.
        self.outputs_path = outputs
        self.mode = mode

    @functools.cached_property
    def memory(self) -> Memory:
        """What runs of the deployment have changed, for ``undo``."""
        return Memory.of(self.entry, self.inputs, self.state.parent)

    @functools.cached_property
    def resource_memory(self) -> Memory:
        """As ``memory``, which the deployments of triggers share, for hooks of which each run replaces the last one."""
        entry = {key: value for key, value in self.entry.items() if key not in ("deployment_id", "trigger_id")}
        is_of_stack = bool(self.inputs.get("deploy_stack_id"))
        return Memory.of(entry if is_of_stack else self.entry, self.inputs, self.state.parent)

    @property
    def is_dry(self) -> bool:
        """Whether the run must not change the machine."""
        return self.mode in DRY_MODES

    @property
    def action(self) -> str:
        """The action of the deployment: CREATE, UPDATE, DELETE, SUSPEND, RESUME, or an action of the user."""
        return str(self.inputs.get("deploy_action") or "")

    @property
    def is_removal(self) -> bool:
        """Whether the run removes what earlier runs of the deployment made."""
        return self.mode == "undo" or self.action == "DELETE"

    @property
    def user_inputs(self) -> Dict[str, Any]:
        """The inputs without those that Heat and Stoker add."""
        return {name: value for name, value in self.inputs.items() if not name.startswith(_DEPLOY)}

    def text(self) -> str:
        """Return the config, which must be text. Raises HookError."""
        if self.config is None:
            return ""
        if not isinstance(self.config, str):
            raise HookError(f"the config of group {self.entry.get('group')} must be text")
        return self.config

    def mapping(self) -> Dict[str, Any]:
        """Return the config, which must be a map, or the JSON or YAML text of a map. Raises HookError."""
        value, what = self.config, f"the config of group {self.entry.get('group')}"
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                value = _from_yaml(value, what)
        if not isinstance(value, dict):
            raise HookError(f"{what} must be a map")
        return value

    def settings(self, *required: str) -> Dict[str, Any]:
        """
        Return the config's map with the user's inputs, which take precedence, for hooks with typed settings.

        Raises HookError if a required setting is missing.
        """
        settings = {**(self.mapping() if self.config else {}), **self.user_inputs}
        for name in required:
            if settings.get(name) in (None, ""):
                raise HookError(f"{self.entry.get('group')} needs the setting {name!r}, in its config or as an input")
        return settings

    def environment(self) -> Dict[str, str]:
        """
        Return the inputs as text by name, with ``heat_outputs_path``.

        Raises HookError for an input that cannot be an environment variable.
        """
        variables = {name: as_text(value) for name, value in self.inputs.items()}
        for name, value in variables.items():
            if not name or "=" in name or "\0" in name + value:
                raise HookError(f"input {name!r} cannot be an environment variable")
        return {**variables, "heat_outputs_path": str(self.outputs_path)}

    def write(self, name: str, content: str, mode: int = 0o600) -> Path:
        """Write a file into the run's directory, only for the owner, and return its path."""
        return write_file(self.working / name, content, mode)

    @contextlib.contextmanager
    def temporary(self, name: str, content: str = "") -> Iterator[Path]:
        """Write a file that may contain secrets into the run's directory. It is removed when the context ends."""
        path = self.write(name, content)
        try:
            yield path
        finally:
            files.remove(path)


def _inputs(entries: Sequence[Any]) -> Dict[str, Any]:
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise HookError(f"an input must be a map with a name, not {entry!r:.100}")
    return {entry["name"]: entry.get("value") for entry in entries}


def run_tool(
    argv: Sequence[str],
    environment: Optional[Mapping[str, str]] = None,
    folder: Optional[Path] = None,
    stdin: Optional[str] = None,
    stdout: Optional[int] = None,
    stderr: Optional[int] = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a tool to its end. Raises HookError if it cannot be started."""
    try:
        return subprocess.run(
            list(argv),
            env={**os.environ, **(environment or {})},
            cwd=None if folder is None else str(folder),
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=None if stdin is None else stdin.encode(),
            stdout=stdout,
            stderr=stderr,
            check=False,
        )
    except FileNotFoundError:
        raise HookError(f"{argv[0]} is not installed on this server, or not in PATH", 127) from None
    except (OSError, ValueError) as error:
        raise HookError(f"cannot run {argv[0]}: {error}", 126) from None


def as_text(value: Any) -> str:
    """Return strings unchanged, None as "", and other values as JSON, because an environment holds only text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def as_flag(value: Any, name: str) -> bool:
    """Return the boolean that ``value`` is or spells. Raises HookError."""
    word = str(value).lower()
    if word not in (*_TRUE, *_FALSE):
        raise HookError(f"{name} must be true or false, not {value!r}")
    return word in _TRUE


def as_seconds(value: Any, name: str, most: float) -> float:
    """Return a number of seconds from 0 to ``most``. Raises HookError."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise HookError(f"{name} must be a number of seconds, not {value!r}") from None
    if not 0 <= seconds <= most:
        raise HookError(f"{name} must be from 0 to {most:g} seconds, not {value!r}")
    return seconds


def as_list(value: Any, name: str) -> List[str]:
    """Return a list of strings: ``value`` itself, or the comma-separated parts of a text. Raises HookError."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(value)
    raise HookError(f"{name} must be a list of texts, not {value!r}")


def _from_yaml(text: str, what: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise HookError(
            f"{what} is a text in YAML, and this server has no python3-yaml: give a map (OS::Heat::StructuredConfig)"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise HookError(f"{what} is neither JSON nor YAML: {error}") from None


def write_file(path: Path, content: Union[str, bytes], mode: int = 0o600) -> Path:
    """Replace a file, with this mode, and make its directory. Return the path. Raises OSError."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    files.write(path, data, mode, folder_mode=0o700)
    return path


def choose_state(settings: Mapping[str, Any], states: Sequence[str]) -> str:
    """Return the setting ``state``, by default the first of the states. Raises HookError for any other value."""
    state = str(settings.get("state") or states[0])
    if state not in states:
        raise HookError(f"state must be one of {', '.join(states)}, not {state!r}")
    return state


def append_progress(path: Path, percent: Optional[int], message: str) -> None:
    """Report progress in the file of a run, as every hook may do. Raises OSError."""
    words = [*([] if percent is None else [str(percent)]), message.replace("\n", " ")]
    with path.open("a", encoding="utf-8", errors="replace") as file:
        file.write(" ".join(words) + "\n")


def read_outputs(entry: Mapping[str, Any], prefix: Path) -> Dict[str, Any]:
    """
    Return the content of the declared outputs by name, up to 1 MiB each.

    The file of the output ``deploy_changed``, which needs no declaration, says whether the run changed the machine:
    ``true`` or ``false``.
    """
    values: Dict[str, Any] = {}
    changed = Path(f"{prefix}.{CHANGED}")
    if changed.is_file():
        with changed.open("rb") as file:
            values[CHANGED] = file.read(8).strip().lower() == b"true"
    for declared in entry.get("outputs") or ():
        name = declared["name"]
        path = Path(f"{prefix}.{name}")
        if not set(name) & {"/", "\0"} and path.is_file():
            with open_trusted(path) as file:  # a longer output exceeds the report's limit in any case
                values[name] = file.read(_LONGEST).decode("utf-8", "replace")
    return values


def container_engine() -> str:
    """Return the command of the container engine: ``docker``, or what ``HEAT_DOCKER_CMD`` names."""
    return os.environ.get("HEAT_DOCKER_CMD", "docker")


def run_hook(group: str, entry: Mapping[str, Any], working: Path, state: Path, outputs: Path, mode: str) -> Result:
    """
    Run the hook of a group for a document's entry. Failures of the hook are returned as a result, never raised.

    ``outputs`` is the prefix of the files for outputs; ``mode`` is one of ``MODES``.
    """
    hook = importlib.import_module(f"stoker_agent.hooks.{group.replace('-', '_')}")
    needs_root = False
    try:
        function = getattr(hook, mode, None) if mode in MODES else None
        if function is None:
            raise HookError(f"the hook {group} does not support {mode}", UNSUPPORTED)
        run = HookRun(entry, working, state, outputs, mode)
        try:
            result: Result = function(run)
        finally:
            needs_root = run.has_tool_failed and not run.is_dry
        result = result._replace(values={**result.values, **read_outputs(entry, outputs)})
    except HookError as error:
        print(error, file=sys.stderr)
        result = Result(error.code, reason=str(error))
    except OSError as error:
        print(error, file=sys.stderr)
        needs_root = isinstance(error, PermissionError)
        result = Result(1, reason=str(error))
    return _explain_root(group, result) if needs_root and getattr(hook, "NEEDS_ROOT", False) else result


def _explain_root(group: str, result: Result) -> Result:
    """
    Add to the failure of a hook that needs root why it failed, if the agent is not root.

    Only for failures of tools and refused accesses: root would not help a run with an invalid config.
    """
    if result.code == 0 or os.geteuid() == 0:
        return result
    note = f"the hook {group} needs root, and this agent runs as another user"
    return result._replace(reason=f"{result.reason}: {note}" if result.reason else note)


def main(group: str) -> None:
    """Run one hook as a child of Stoker's agent: the config is JSON on standard input, the result goes to a file."""
    entry = json.load(sys.stdin)
    target = Path(os.environ[RESULT_FILE])
    state = Path(os.environ[STATE]) / group
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    result = run_hook(group, entry, target.parent, state, target.parent / "out", os.environ.get(MODE, APPLY))
    write_file(target, json.dumps(result.to_report()))
