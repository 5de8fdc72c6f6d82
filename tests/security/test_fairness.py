"""Much that one project has done must not keep the others waiting."""

from __future__ import annotations

import threading
import time

from support.templates import define, template

#: More than one transaction's share each.
_STACKS, _RESOURCES = 3, 700
_TRIES = 3
#: Largest share of the time of all creations that a small write may take. One stack after the other is a third.
_SHARE = 0.2


def _worst_write(member, stranger, round_: int) -> tuple[float, float]:
    """Seconds of the slowest write of another project while large stacks are created, and of all these creations."""
    large = template({f"r{n}": define("OS::Heat::Value", value="x") for n in range(_RESOURCES)})
    ids: list[str] = []
    begun = threading.Barrier(_STACKS + 1)

    def attack(n: int) -> None:
        begun.wait(60)
        body = {"stack_name": f"large-{round_}-{n}", "template": large}
        answer = member.heat("POST", "/stacks", body)
        assert answer.status == 201, answer.raw
        ids.append(answer.body["stack"]["id"])

    def busy() -> bool:
        states = [each["stack_status"] for each in member.heat("GET", "/stacks").body["stacks"] if each["id"] in ids]
        return any(attacker.is_alive() for attacker in attackers) or any("PROGRESS" in state for state in states)

    attackers = [threading.Thread(target=attack, args=(n,)) for n in range(_STACKS)]
    worst = 0.0
    for attacker in attackers:
        attacker.start()
    begun.wait(60)
    all_started = time.monotonic()
    while busy():
        started = time.monotonic()
        answer = stranger.heat("POST", "/software_configs", {"group": "script", "config": "true"})
        worst = max(worst, time.monotonic() - started)
        assert answer.status == 200, answer.raw
    assert len(ids) == _STACKS
    return worst, time.monotonic() - all_started


def test_large_stacks_do_not_delay_small_writes_of_another_project(member, stranger):
    measured = []
    for round_ in range(_TRIES):
        worst, whole = _worst_write(member, stranger, round_)
        measured.append((round(worst, 2), round(whole, 2)))
        if worst <= _SHARE * whole:
            return
    raise AssertionError(f"small writes took (worst, all creations): {measured}")
