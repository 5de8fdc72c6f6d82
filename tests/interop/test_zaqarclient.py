"""python-zaqarclient, with a token and with signed URLs, and openstacksdk's message proxy."""

from __future__ import annotations

import uuid

import pytest
from openstack import exceptions
from zaqarclient.queues import client as zaqarclient
from zaqarclient.transport import errors

pytestmark = pytest.mark.filterwarnings("ignore")


def connected(stoker, url=None):
    said = stoker.environment
    options = {
        "os_username": said["OS_USERNAME"],
        "os_password": said["OS_PASSWORD"],
        "os_project_name": said["OS_PROJECT_NAME"],
        "os_auth_url": said["OS_AUTH_URL"],
        "os_user_domain_name": "Default",
        "os_project_domain_name": "Default",
    }
    conf = {"auth_opts": {"backend": "keystone", "options": options}}
    return zaqarclient.Client(url, version=2, conf=conf)


def holding(stoker, signed):
    """As agents of servers are: a queue's signed URL, and no token."""
    options = {
        "signature": signed["signature"],
        "expires": signed["expires"],
        "methods": signed["methods"],
        "paths": signed["paths"],
        "os_project_id": signed["project"],
    }
    conf = {"auth_opts": {"backend": "signed-url", "options": options}}
    return zaqarclient.Client(f"{stoker.url}/messaging", version=2, conf=conf)


@pytest.fixture(scope="module")
def zaqar(stoker):
    return connected(stoker)


@pytest.fixture(scope="module")
def other(stoker):
    """Another client of the same project, with an URL of its own choice."""
    return connected(stoker, f"{stoker.url}/messaging")


@pytest.fixture
def name():
    return f"z-{uuid.uuid4().hex[:12]}"


def test_the_client_posts_and_reads_messages(zaqar, other, name):
    queue = zaqar.queue(name)
    posted = queue.post([{"body": {"n": n}, "ttl": 300} for n in range(5)])
    assert len(posted["resources"]) == 5
    ids = [each.rpartition("/")[2] for each in posted["resources"]]
    assert [each.body for each in queue.messages(echo=True)] == [{"n": n} for n in range(5)]
    assert list(queue.messages()) == []
    theirs = other.queue(name)
    assert [each.body["n"] for each in theirs.messages(limit=2)] == [0, 1]
    assert [each.body["n"] for each in theirs.messages(limit=2).stream()] == [0, 1, 2, 3, 4]
    one = queue.message(ids[0])
    assert (one.id, one.body, one.ttl) == (ids[0], {"n": 0}, 300)
    assert [each.id for each in queue.messages(ids[1], ids[2])] == [ids[1], ids[2]]
    one.delete()
    queue.delete_messages(ids[1])
    with pytest.raises(errors.ResourceNotFound):
        queue.message(ids[0])
    assert [each.body["n"] for each in theirs.pop(2)] == [2, 3]
    assert [each.body["n"] for each in theirs.pop(2)] == [4]
    assert list(queue.pop()) == []
    with pytest.raises(errors.MalformedRequest, match="ttl"):
        queue.post({"body": "x", "ttl": 1})
    queue.delete()


def test_the_client_manages_queues_and_their_metadata(zaqar, name):
    queue = zaqar.queue(name, force_create=True)
    assert queue.metadata()["_default_message_ttl"] == 3600
    queue.metadata(new_meta={"_default_message_ttl": 120, "color": "red"})
    found = zaqar.queue(name).metadata(force_reload=True)
    assert (found["_default_message_ttl"], found["color"]) == (120, "red")
    queue.metadata(new_meta={"color": "blue"})
    assert zaqar.queue(name).metadata(force_reload=True)["_default_message_ttl"] == 3600
    listed, count = zaqar.queues(name=name, detailed=True, with_count=True)
    [one] = list(listed)
    assert (one.name, one.metadata()["color"]) == (name, "blue")
    assert count >= 1
    queue.delete()
    assert list(zaqar.queues(name=name)[0]) == []


def test_the_client_manages_subscriptions(zaqar, name):
    made = zaqar.subscription(name, subscriber="http://127.0.0.1:9/hook", ttl=600, options={"a": 1})
    assert (made.ttl, made.options, made.confirmed) == (600, {"a": 1}, False)
    made.update({"ttl": 800})
    assert zaqar.subscription(name, id=made.id).ttl == 800
    [listed] = list(zaqar.subscriptions(name))
    assert (listed.id, listed.subscriber) == (made.id, "http://127.0.0.1:9/hook")
    with pytest.raises(errors.ConflictError):
        zaqar.subscription(name, subscriber="http://127.0.0.1:9/hook", ttl=600)
    with pytest.raises(errors.MalformedRequest, match="mail"):
        zaqar.subscription(name, subscriber="mailto:a@example.org")
    made.delete()
    assert list(zaqar.subscriptions(name)) == []


def test_the_client_uses_a_signed_url(stoker, zaqar, name):
    queue = zaqar.queue(name)
    queue.post([{"body": "document"}])
    held = holding(stoker, queue.signed_url(paths=["messages"], ttl_seconds=3600, methods=["GET", "DELETE"])).queue(
        name
    )
    assert [each.body for each in held.messages()] == ["document"]
    assert [each.body for each in held.pop()] == ["document"]
    with pytest.raises(errors.ResourceNotFound):
        held.post({"body": "no"})
    posting = holding(stoker, queue.signed_url(methods=["POST"])).queue(name)
    posting.post({"body": {"deploy_status_code": 0}})
    assert [each.body for each in queue.pop(5)] == [{"deploy_status_code": 0}]


def test_openstacksdk_posts_and_reads_messages(cloud, name):
    assert cloud.message.create_queue(name=name, default_message_ttl=99, description="d").name == name
    assert (cloud.message.get_queue(name).default_message_ttl, cloud.message.get_queue(name).description) == (99, "d")
    assert name in [each.name for each in cloud.message.queues()]
    hrefs = [
        href
        for _ in range(2)
        for href in cloud.message.post_message(name, [{"body": {"n": n}, "ttl": 300} for n in range(15)])
    ]
    assert len(list(cloud.message.messages(name, echo=True))) == 30
    id = hrefs[0].rpartition("/")[2]
    assert cloud.message.get_message(name, id).body == {"n": 0}
    cloud.message.delete_message(name, id)
    with pytest.raises(exceptions.NotFoundException):
        cloud.message.get_message(name, id)
    with pytest.raises(exceptions.BadRequestException):
        cloud.message.create_queue(name=f"{name}-b", default_message_ttl=1)
    cloud.message.delete_queue(name)


def test_openstacksdk_manages_subscriptions(cloud, name):
    made = cloud.message.create_subscription(name, subscriber="http://127.0.0.1:9/sdk", ttl=600, options={})
    assert cloud.message.get_subscription(name, made.subscription_id).subscriber == "http://127.0.0.1:9/sdk"
    assert [each.subscriber for each in cloud.message.subscriptions(name)] == ["http://127.0.0.1:9/sdk"]
    cloud.message.delete_subscription(name, made.subscription_id)
    assert list(cloud.message.subscriptions(name)) == []


def test_the_openstack_command_manages_queues(openstack, name):
    openstack("messaging", "queue", "create", name)
    openstack("messaging", "queue", "set", "metadata", name, '{"color": "red"}')
    assert "red" in str(openstack("messaging", "queue", "get", "metadata", name, "-f", "json"))
    client = ("--client-id", str(uuid.uuid4()))
    openstack("messaging", "message", "post", name, '[{"body": {"hello": 1}, "ttl": 120}]', *client)
    listed = openstack("messaging", "message", "list", name, "--echo", *client, "-f", "json")
    assert "hello" in str(listed[0]["Body"])
    assert openstack("messaging", "queue", "signed", "url", name, "--methods", "GET", "-f", "json")
    openstack("messaging", "queue", "delete", name)
