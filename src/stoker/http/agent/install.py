"""/agent/v1/install and /agent/v1/stoker-agent.pyz: how an agent comes to a machine."""

from __future__ import annotations

from stoker.http.call import Call, Reply


def script(call: Call) -> Reply:
    return Reply(200, call.services.servers.program.install_script(), media_type="text/x-shellscript")


def zipapp(call: Call) -> Reply:
    return Reply(200, call.services.servers.program.zipapp(), media_type="application/zip")
