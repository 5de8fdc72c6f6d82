"""/v1/{project}/software_configs"""

from __future__ import annotations

from stoker.deployments import manage
from stoker.deployments.derive import STARS
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.model.errors import Forbidden, RequestLimitExceeded
from stoker.store import configs, rows
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    if reading.flag(call.query.get("global_tenant"), "global_tenant"):
        raise Forbidden("You are not authorized to complete this action.")
    limit = reading.whole(call.query.get("limit"), "limit")
    with call.services.store.read() as tx:
        found = configs.page(tx, call.project, limit=limit, marker=call.query.get("marker"))
    return Reply(200, {"software_configs": found})


def create(call: Call) -> Reply:
    body = reading.body(call)
    limit = call.services.settings.max_software_configs

    def do(tx: Tx) -> str:
        if 0 <= limit <= configs.count(tx, call.project):
            raise RequestLimitExceeded(f"this project may have {limit} software configs and has them: delete some")
        _, rendered = manage.new_config(
            tx,
            call.project,
            name=body.get("name"),
            group=body.get("group"),
            config=body.get("config"),
            inputs=body.get("inputs"),
            outputs=body.get("outputs"),
            options=body.get("options"),
        )
        return rendered

    return _shown(call.services.store.write(do))


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        return _shown(_without_secrets(configs.body(tx, call.path["config_id"], call.project)))


def delete(call: Call) -> Reply:
    call.services.store.write(lambda tx: manage.delete_config(tx, call.path["config_id"], call.project))
    return Reply(204)


def _without_secrets(rendered: str) -> str:
    """Agents get their documents; whoever looks at a derived config is not shown the values of secret inputs."""
    if '"secret":true' not in rendered:
        return rendered
    config = rows.load(rendered)
    config["inputs"] = [
        {**entry, "value": STARS} if entry.get("secret") and "value" in entry else entry for entry in config["inputs"]
    ]
    return rows.dump(config)


def _shown(rendered: str) -> Reply:
    return Reply(200, f'{{"software_config":{rendered}}}'.encode())
