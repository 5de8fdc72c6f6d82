"""Trade an enrolment token for this server's own key."""

from __future__ import annotations

import json
import socket

from stoker_agent import __version__
from stoker_agent.channel import Channel
from stoker_agent.config import Config, Paths, Unusable, instance, keep
from stoker_agent.programs import available
from stoker_agent.web import Answer, Unreachable


def enroll(paths: Paths, url: str, token: str, ca_file: str | None) -> Config:
    """Safe to repeat with the same token. Raises Unusable."""
    paths.make()
    body = {
        "token": token,
        "instance": instance(paths.state),
        "hostname": socket.gethostname(),
        "agent": {"version": __version__, "hooks": available(paths.hooks)},
    }
    try:
        channel = Channel(Config(url, "", "", ca_file))
        answer = channel.call(
            "POST", "/agent/v1/enroll", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        channel.close()
        if answer.status != 201:
            raise Unusable(f"cannot enrol at {url}: {_refusal(answer)}")
        said = answer.json()
        config = Config(url, said["server_id"], said["key"], ca_file)
    except (Unreachable, ValueError, OSError) as error:
        raise Unusable(f"cannot enrol at {url}: {error}") from None
    except (KeyError, TypeError):
        raise Unusable(f"cannot enrol at {url}: that is no Stoker's answer") from None
    keep(paths.config, config)
    return config


def _refusal(answer: Answer) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {answer.status}"
