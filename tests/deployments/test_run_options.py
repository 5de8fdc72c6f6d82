"""Options that the agent applies to runs are checked when a config is created."""

from __future__ import annotations

from importlib import import_module

import pytest

from stoker.deployments.configs import WITHOUT_UNDO, check_options
from stoker.model.config import depends_on
from stoker.model.errors import Invalid
from stoker_agent.hook_contract import HookError
from stoker_agent.limits import RunOptions
from stoker_agent.programs import list_builtin

VALID = [
    {},
    {"tags": "a,b", "own": {"x": 1}},
    {"user": "www-data", "memory_max": "512M", "cpu_max": "150%", "tasks_max": 20, "nice": -5, "private_tmp": True},
    {"memory_max": 1048576, "tasks_max": "7", "nice": "19", "private_tmp": "false", "limits": "best_effort"},
    {"environment": {"A": "1", "B_2": 3, "C": [1]}, "depends_on": ["a", "b"]},
    {"depends_on": "a", "user": None},
]
INVALID = [
    ("user", ""),
    ("user", 5),
    *(("memory_max", value) for value in ("0", "-1", "1.5G", "much", "5 M", True, [], "512MB")),
    *(("cpu_max", value) for value in ("0%", 50, "50", "-5%", "x%")),
    *(("tasks_max", value) for value in (0, -1, "many", True, 1.5)),
    *(("nice", value) for value in (-21, 20, "low", False)),
    *(("private_tmp", value) for value in ("yes", 1, {})),
    ("limits", "none"),
]


@pytest.mark.parametrize("options", VALID)
def test_valid_options_are_accepted_by_the_server_and_by_the_agent(options):
    check_options(options)
    RunOptions.of({"options": options})


@pytest.mark.parametrize(("name", "value"), INVALID)
def test_the_server_and_the_agent_refuse_the_same_values_with_the_name_of_the_option(name, value):
    with pytest.raises(Invalid, match=f"The option {name} must be"):
        check_options({name: value})
    with pytest.raises(HookError, match=f"The option {name} cannot be"):
        RunOptions.of({"options": {name: value}})


@pytest.mark.parametrize(
    ("name", "value"),
    [("environment", "A=1"), ("environment", {"A B": 1}), ("environment", {"A": "\0"}), ("depends_on", 1)]
    + [("depends_on", value) for value in ("", [""], {"a": 1}, [1])],
)
def test_invalid_variables_and_names_are_refused(name, value):
    with pytest.raises(Invalid, match=f"The option {name} must be"):
        check_options({name: value})


def test_the_names_of_dependencies():
    assert [depends_on(options) for options in ({}, {"depends_on": "a"}, {"depends_on": ["a", "b"]})] == [
        (),
        ("a",),
        ("a", "b"),
    ]


def test_groups_without_undo_are_those_whose_hooks_have_none():
    hooks = {group: import_module(f"stoker_agent.hooks.{group.replace('-', '_')}") for group in list_builtin()}
    assert {group for group, hook in hooks.items() if not hasattr(hook, "undo")} == WITHOUT_UNDO


@pytest.mark.parametrize("group", sorted(WITHOUT_UNDO))
def test_a_hook_that_cannot_undo_is_refused(group):
    for value in (True, "True", 1):
        with pytest.raises(Invalid, match=f"The option undo must be the text of a script .* the group {group} cannot"):
            check_options({"undo": value}, group)
    for options in ({"undo": "rm -f x"}, {"undo": False}, {"undo": "false"}, {"undo": True, "hook": "own"}, {}):
        check_options(options, group)
    for other in ("file", "an-own-group", None):
        check_options({"undo": True}, other)
