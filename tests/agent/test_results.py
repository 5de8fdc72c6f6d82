"""Results on their way: to whom the inputs say, until somebody has them, and then no more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker_agent import live
from stoker_agent.config import Config
from stoker_agent.disk import Disk
from stoker_agent.outbox import Outbox
from stoker_agent.results import Results
from stoker_agent.runs import Runs, with_source
from stoker_agent.transports import Senders
from stoker_agent.web import Channel
from support.http_stub import Answering, Asked, Said, answering
from support.waiting import until

pytestmark = pytest.mark.usefixtures("short_pauses")

RESULT = {"deploy_stdout": "out", "deploy_stderr": "", "deploy_status_code": 0, "answer": 42}


class World:
    """Everybody who takes results. ``fails``: by a word of the path, what is answered before it goes well."""

    def __init__(self) -> None:
        self.fails: dict[str, list[Said]] = {}
        self.held = threading.Event()
        self.held.set()

    def decide(self, asked: Asked) -> Said:
        self.held.wait(60)
        for word, left in self.fails.items():
            if word in asked.path and left:
                return left.pop(0)
        if asked.path.endswith("/auth/tokens"):
            catalog = [
                {"type": kind, "endpoints": [{"interface": "public", "url": f"http://{asked.headers['host']}{path}"}]}
                for kind, path in (("orchestration", "/heat/v1/p"), ("messaging", "/zaqar"))
            ]
            return Said(201, {"token": {"catalog": catalog}}, {"X-Subject-Token": "t"})
        return Said(201 if asked.verb == "PUT" else 200, {})


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def there(world: World) -> Iterator[Answering]:
    with answering(world.decide) as running:
        yield running
        world.held.set()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


class Reporter:
    """Results with an outbox that has begun."""

    def __init__(self, runs: Runs, config: Config | None, longest: float) -> None:
        channel = None if config is None else Channel(config)
        self.outbox = Outbox(channel, longest)
        self.senders = Senders(channel)
        self.results = Results(runs, Disk(runs.folder("x").parent, self.outbox), self.outbox, self.senders, {})
        self.outbox.start()
        self.wait = self.outbox.wait

    def end(self) -> None:
        """
        Drop all messages, so that the thread of the outbox sleeps, which lives as long as this process.

        Otherwise it would try to send them a hundred times a second until the last test of the process has ended, and
        take random numbers meanwhile, which Hypothesis mistakes for an unreliable test.
        """
        for key in list(self.outbox._messages):
            self.outbox.drop(key)
        self.wait(60)
        assert not self.outbox._messages, "the outbox is still busy"
        self.senders.close()


@pytest.fixture
def report(there, world, runs) -> Iterator[Callable[..., Reporter]]:
    """A reporter that has begun."""
    reporters: list[Reporter] = []

    def one(*, enrolled: bool = True, longest: float = 0.02) -> Reporter:
        config = Config(f"{there.url}/stoker", "s", "key") if enrolled else None
        reporters.append(Reporter(runs, config, longest))
        return reporters[-1]

    yield one
    world.held.set()
    for each in reporters:
        each.end()


def login(there: Answering) -> dict[str, str]:
    return {
        "deploy_auth_url": f"{there.url}/v3",
        "deploy_user_id": "u",
        "deploy_password": "pw",
        "deploy_project_id": "p",
        "deploy_region_name": "r",
    }


def said(there: Answering, transport: str) -> dict[str, str]:
    """Inputs that name it, as Heat writes them."""
    resource = {"deploy_stack_id": "stack/1", "deploy_resource_name": "deployment"}
    return {
        "CFN_SIGNAL": {"deploy_signal_id": f"{there.url}/cfn?Signature=secret", "deploy_signal_verb": "POST"},
        "TEMP_URL_SIGNAL": {"deploy_signal_id": f"{there.url}/object?sig=secret", "deploy_signal_verb": "PUT"},
        "HEAT_SIGNAL": {**login(there), **resource},
        "ZAQAR_SIGNAL": {**login(there), **resource, "deploy_queue_id": "queue"},
        "STOKER_SIGNAL": {"deploy_signal_transport": "STOKER_SIGNAL"},
        "NO_SIGNAL": resource,
    }[transport]


PATHS = {
    "CFN_SIGNAL": ("POST", "/cfn"),
    "TEMP_URL_SIGNAL": ("PUT", "/object"),
    "HEAT_SIGNAL": ("POST", "/heat/v1/p/stacks/stack/1/resources/deployment/signal"),
    "ZAQAR_SIGNAL": ("POST", "/zaqar/v2/queues/queue/messages"),
    "STOKER_SIGNAL": ("POST", "/stoker/agent/v1/runs/c1/signal"),
}


def entry(id: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "inputs": [{"name": name, "value": value} for name, value in inputs.items()]}


def _told(transport: str) -> dict[str, Any]:
    """Stoker's own channel says in the URL which run it is."""
    return RESULT if transport == "STOKER_SIGNAL" else {**RESULT, "deploy_config_id": "c1"}


def ended(runs: Runs, reporter: Reporter, id: str, inputs: dict[str, Any], source: str = "cfn", result: Any = RESULT):
    runs.begin(with_source(entry(id, inputs), source))
    reporter.results.keep(runs.entry(id), result)
    reporter.results.announce(runs.entry(id))


def results(there: Answering) -> list[Asked]:
    return [each for each in there.asked if not each.path.endswith("/auth/tokens")]


def values(asked: Asked) -> Any:
    return asked.json["messages"][0]["body"] if "/queues/" in asked.path else asked.json


def acknowledged(runs: Runs, id: str) -> bool:
    return runs.folder(id).joinpath("acknowledged").exists()


@pytest.mark.parametrize("transport", ["NO_SIGNAL", *PATHS])
def test_a_run_of_the_stoker_source_is_reported_to_stoker(there, runs, report, transport):
    reporter = report()
    ended(runs, reporter, "c1", {**said(there, transport), "deploy_signal_transport": transport}, source="stoker")
    reporter.wait(60)
    told = [] if transport == "NO_SIGNAL" else ["/stoker/agent/v1/runs/c1/signal"]
    assert [each.path for each in there.asked] == told
    assert acknowledged(runs, "c1")


@pytest.mark.parametrize("inputs", [{}, {"deploy_signal_transport": "STOKER_SIGNAL"}, {"deploy_auth_url": "http://x"}])
def test_a_result_without_a_sender_is_acknowledged_at_once(there, runs, report, inputs):
    reporter = report(enrolled=False)
    ended(runs, reporter, "c1", inputs)
    reporter.wait(60)
    assert acknowledged(runs, "c1")
    assert there.asked == []


TROUBLE = [Said(500), Said(503), Said(429), Said(408), Said(lost=True)]


@pytest.mark.parametrize("transport", list(PATHS))
def test_each_result_goes_to_the_target_in_its_inputs_until_it_is_accepted(there, world, runs, report, transport):
    world.fails[PATHS[transport][1]] = list(TROUBLE)
    reporter = report()
    ended(runs, reporter, "c1", said(there, transport))
    reporter.wait(60)
    assert acknowledged(runs, "c1")
    sent = [(each.verb, each.path, each.headers["content-type"], values(each)) for each in results(there)]
    assert sent == [(*PATHS[transport], "application/json", _told(transport))] * (len(TROUBLE) + 1)


@pytest.mark.parametrize(
    ("answers", "count"),
    [([Said(500), Said(lost=True), Said(200, b"odd")], 1), ([Said(401)], 0)],
    ids=["busy", "refused"],
)
@pytest.mark.parametrize("transport", ["HEAT_SIGNAL", "ZAQAR_SIGNAL"])
def test_a_failed_login_is_retried_and_a_refused_one_is_final(there, world, runs, report, transport, answers, count):
    world.fails["tokens"] = list(answers)
    reporter = report()
    ended(runs, reporter, "c1", said(there, transport))
    reporter.wait(60)
    assert len(results(there)) == count
    assert len(there.asked) == len(answers) + 2 * count
    assert acknowledged(runs, "c1")


@pytest.mark.parametrize("status", [404, 410, 400, 413])
@pytest.mark.parametrize("transport", list(PATHS))
def test_a_refused_result_is_not_sent_again(there, world, runs, report, transport, status):
    """Stoker, which still waits for the run, gets a failure with the reason, unless it has no use for the result."""
    world.fails[PATHS[transport][1]] = [Said(status, b"no")]
    reporter = report()
    ended(runs, reporter, "c1", said(there, transport))
    reporter.wait(60)
    assert acknowledged(runs, "c1")
    failures = [] if transport != "STOKER_SIGNAL" or status in (404, 410) else [f"refused the result: {status} no"]
    assert [each.json["deploy_status_reason"].partition("server ")[2] for each in results(there)[1:]] == failures


def test_secrets_are_not_in_the_log(there, world, runs, report, caplog):
    world.fails = {"/cfn": [Said(500), Said(lost=True), Said(400)], "tokens": [Said(401)]}
    reporter = report()
    ended(runs, reporter, "c1", said(there, "CFN_SIGNAL"))
    ended(runs, reporter, "c2", said(there, "HEAT_SIGNAL"))
    reporter.wait(60)
    assert "is refused, and not sent again" in caplog.text
    assert "secret" not in caplog.text
    assert "pw" not in caplog.text


def test_an_unreachable_target_does_not_delay_other_targets(there, world, runs, report):
    with answering(lambda _: Said(lost=True)) as away:
        reporter = report(longest=30.0)
        ended(runs, reporter, "c1", said(away, "CFN_SIGNAL"))
        for n in range(2, 6):
            ended(runs, reporter, f"c{n}", said(there, "CFN_SIGNAL"))
            until(lambda n=n: acknowledged(runs, f"c{n}"))
        assert not acknowledged(runs, "c1")
        away.decide = lambda _: Said()
        until(lambda: acknowledged(runs, "c1"))
    assert len(results(there)) == 4


def test_an_overloaded_target_gets_no_other_result_for_as_long_as_it_asks(there, world, runs, report):
    world.fails["/c1/"] = [Said(503, headers={"Retry-After": "100"})]
    reporter = report()
    ended(runs, reporter, "c1", {}, source="stoker")
    until(lambda: there.asked)
    ended(runs, reporter, "c2", {}, source="stoker")
    for count, id in enumerate(("c3", "c4"), 2):  # each makes the outbox look at all messages
        ended(runs, reporter, id, {"deploy_signal_id": f"{there.url}/cfn/{id}/signal", "deploy_signal_verb": "POST"})
        until(lambda count=count: len(there.asked) >= count)
    assert [asked.path.split("/")[-2] for asked in there.asked] == ["c1", "c3", "c4"]


def test_results_of_an_earlier_agent_process_are_sent_unless_acknowledged(there, runs, report):
    for n in range(4):
        runs.begin(with_source(entry(f"c{n}", said(there, "CFN_SIGNAL")), "cfn"))
    for n in range(3):
        runs.end({"id": f"c{n}"}, {**RESULT, "n": n})
    runs.acknowledge("c1")
    report().wait(60)
    assert [each.json["n"] for each in there.asked] == [0, 2]


@pytest.mark.parametrize("text", ["{", "[]", "5", "{}", '{"inputs": [5]}'])
def test_the_result_of_an_unreadable_entry_goes_to_stoker(there, runs, report, text):
    runs.begin(with_source(entry("c1", said(there, "CFN_SIGNAL")), "cfn"))
    runs.end({"id": "c1"}, RESULT)
    runs.folder("c1").joinpath("entry.json").write_text(text)
    report().wait(60)
    assert [each.path for each in there.asked] == ["/stoker/agent/v1/runs/c1/signal"]


@pytest.mark.parametrize(("transport", "limit"), [("CFN_SIGNAL", 950_000), ("ZAQAR_SIGNAL", 256 * 1024)])
def test_a_large_result_is_cut_to_head_and_tail(there, runs, report, transport, limit):
    long = {**RESULT, "deploy_stdout": "".join(f"line é {n}\n" for n in range(200_000)), "deploy_stderr": "err\n" * 9}
    reporter = report()
    ended(runs, reporter, "c1", said(there, transport), result=long)
    reporter.wait(60)
    (asked,) = results(there)
    assert limit * 0.9 < len(asked.body) <= limit
    found = values(asked)
    head, mark, tail = found["deploy_stdout"].partition("\n[… ")
    assert head.startswith("line é 0\nline é 1\n")
    assert mark
    assert tail.endswith("line é 199998\nline é 199999\n")
    assert (found["deploy_stderr"], found["answer"]) == ("err\n" * 9, 42)


def test_runs_of_heat_agents_are_adopted(runs, tmp_path):
    deployed = tmp_path / "deployed"
    deployed.mkdir()
    for name in ("c1.json", "c1.notify.json", "c2.json", "no id.json", "text"):
        deployed.joinpath(name).touch()
    runs.begin(with_source(entry("c2", {}), "cfn"))
    for _ in range(2):
        runs.adopt(deployed)
    runs.adopt(tmp_path / "not there")
    assert [Runs(tmp_path).has_begun(id) for id in ("c1", "c2", "c3")] == [True, True, False]
    assert tmp_path.joinpath("past-runs").read_text().split() == ["c1"]


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL", "ZAQAR_SIGNAL"])
def test_progress_is_signalled_when_the_percentage_changes(there, report, tmp_path, monkeypatch, transport):
    monkeypatch.setattr(live, "_FIRST_SIGNAL_SECONDS", 0.0)
    monkeypatch.setattr(live, "_BETWEEN_SIGNALS_SECONDS", 0.0)
    told = entry("c1", {**said(there, transport), "deploy_signal_transport": transport, "deploy_status_aware": "true"})
    assert live.wants_progress(told)
    file = tmp_path / "progress"
    file.write_text("10 loading\n")
    reporter = report(enrolled=False)
    telling = live.Signals(reporter.outbox, reporter.senders.of(with_source(told, "cfn")), "c1", tmp_path)
    until(lambda: len(results(there)) == 1)
    file.write_text("10 loading more\n20 there\n")
    until(lambda: len(results(there)) == 2)
    telling.end({})
    assert [values(each) for each in results(there)] == [
        {"deploy_status": "IN_PROGRESS", "deploy_config_id": "c1", "deploy_percent": 10, "deploy_status_reason": word}
        | more
        for word, more in (("loading", {}), ("there", {"deploy_percent": 20}))
    ]


@pytest.mark.parametrize(
    "inputs",
    [
        {"deploy_signal_transport": "TEMP_URL_SIGNAL", "deploy_status_aware": "true"},
        {"deploy_signal_transport": "NO_SIGNAL", "deploy_status_aware": "true"},
        {"deploy_signal_transport": "HEAT_SIGNAL"},
        {"deploy_signal_transport": "HEAT_SIGNAL", "deploy_status_aware": "false"},
    ],
)
def test_progress_is_not_signalled_to_targets_that_do_not_support_it(inputs):
    assert not live.wants_progress(entry("c1", inputs))


def test_only_a_later_document_requests_an_accepted_result_again(runs, tmp_path, monkeypatch, caplog):
    """Stoker does not send the document again for a result: the last one may list the run for long."""
    outbox = Outbox(None)
    results = Results(runs, Disk(tmp_path, outbox), outbox, Senders(None), {})
    outbox.start()
    run = with_source(entry("c1", {}), "stoker")
    results.observe({"c1": run})
    runs.begin(run)
    results.keep(run, {"deploy_status_code": 0})
    results.announce(run)
    outbox.wait(60)
    monkeypatch.setattr("stoker_agent.results.LOST_SECONDS", -1)
    results.repeat_lost()
    assert "result.requested" not in caplog.text
    results.observe({"c1": run})
    assert "result.requested" in caplog.text


def test_a_run_that_begins_meanwhile_is_not_lost(runs, tmp_path, monkeypatch):
    """It may have waited for another run for so long that its result could have been lost."""
    outbox = Outbox(None)
    results = Results(runs, Disk(tmp_path, outbox), outbox, Senders(None), {})
    run, has_begun = with_source(entry("c1", {}), "stoker"), runs.has_begun

    def begin(id: str) -> bool:
        runs.begin(run)
        return has_begun(id)

    monkeypatch.setattr(runs, "has_begun", begin)
    monkeypatch.setattr("stoker_agent.results.LOST_SECONDS", -1)
    results.observe({"c1": run})
    assert runs.list_interrupted() == ["c1"]
