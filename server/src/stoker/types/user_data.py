"""
User data for the boot of a server, in Heat's format: a MIME message of parts for cloud-init.

The message contains the user's own parts and the server's metadata, from which an agent learns how to reach Stoker.
Pure functions.
"""

from __future__ import annotations

import base64
import email
import hashlib
import json
from collections.abc import Iterator, Mapping
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

from stoker.json_values import decode
from stoker.model.errors import Invalid

HEAT_CFNTOOLS, RAW, SOFTWARE_CONFIG = "HEAT_CFNTOOLS", "RAW", "SOFTWARE_CONFIG"
FORMATS = (HEAT_CFNTOOLS, RAW, SOFTWARE_CONFIG)
#: Directories in which agents look for the metadata of the boot.
_PLACES = ("/var/lib/heat-cfntools", "/var/lib/cloud/data")
_METADATA = "cfn-init-data"
_INITDATA = "x-cfninitdata"
_DOCUMENT_KEY = "stoker-document-key"

_CLOUD_CONFIG = """\
#cloud-config
output: {all: '| tee -a /var/log/cloud-init-output.log'}
"""
_BOOTHOOK = """\
#!/bin/sh
# The cfn tools look for each other in /opt/aws/bin, wherever they were installed.
mkdir -p /opt/aws/bin /var/lib/heat-cfntools
for tool in /usr/bin/cfn-* /usr/local/bin/cfn-*; do
    [ -x "$tool" ] && ln -sf "$tool" "/opt/aws/bin/${tool##*/}"
done
exit 0
"""
_PART_HANDLER = '''\
#part-handler
"""Keeps what the parts of type text/x-cfninitdata hold where agents look for it."""
import os

PLACES = ("/var/lib/heat-cfntools", "/var/lib/cloud/data")


def list_types():
    return ["text/x-cfninitdata"]


def handle_part(data, ctype, filename, payload):
    if ctype in ("__begin__", "__end__"):
        return
    if isinstance(payload, str):
        payload = payload.encode("utf-8")
    mode = 0o700 if filename == "cfn-userdata" else 0o600
    for place in PLACES:
        os.makedirs(place, mode=0o700, exist_ok=True)
        path = os.path.join(place, os.path.basename(filename))
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(payload)
'''
_LOG_USERDATA = '''\
#!/usr/bin/env python3
"""Runs the user's script and keeps what it says."""
import datetime
import subprocess
import sys

with open("/var/log/heat-provision.log", "a") as log:
    log.write("started %s\\n" % datetime.datetime.now())
    log.flush()
    code = subprocess.call(["/var/lib/heat-cfntools/cfn-userdata"], stdout=log, stderr=log)
    log.write("ended %s with %s\\n" % (datetime.datetime.now(), code))
open("/var/lib/heat-cfntools/provision-finished", "w").close()
sys.exit(code)
'''
_CA_FILE = "/usr/local/lib/stoker/ca.pem"
_STOKER_AGENT = """\
#!/bin/sh
# Installs Stoker's agent, which goes by the metadata that this server booted with.
set -e
mkdir -p /usr/local/lib/stoker
agent=/usr/local/lib/stoker/stoker-agent.pyz
url={url}/agent/v1/stoker-agent.pyz
ca={ca_file}
[ -z "$ca" ] || cat > "$ca" <<'CERTIFICATES'
{ca_certificates}CERTIFICATES
# The agent needs Python in any case, and images without curl and wget are usual.
python3 - "$url" "$agent.new" "$ca" <<'DOWNLOAD'
import shutil, ssl, sys, time, urllib.request

url, path, ca = sys.argv[1:]
for seconds in (1, 2, 4, 8, 16, 32, 60, 60, 60, None):
    try:
        context = ssl.create_default_context(cafile=ca or None)
        with urllib.request.urlopen(url, timeout=60, context=context) as answer, open(path, "wb") as file:
            shutil.copyfileobj(answer, file)
        break
    except OSError as error:
        print("cannot download %s: %s" % (url, error), file=sys.stderr, flush=True)
        if seconds is None:
            sys.exit(1)
        time.sleep(seconds)
DOWNLOAD
mv "$agent.new" "$agent"
run="/usr/bin/env python3 $agent run --os-collect-config /var/lib/heat-cfntools/cfn-init-data{options}"
if [ -d /run/systemd/system ]; then
    cat > /etc/systemd/system/stoker-agent.service <<UNIT
[Unit]
Description=Stoker's agent
After=network-online.target
Wants=network-online.target
[Service]
ExecStart=$run
Restart=always
KillMode=process
[Install]
WantedBy=multi-user.target
UNIT
    systemctl daemon-reload
    systemctl enable --now stoker-agent.service
else
    nohup $run >/dev/null 2>&1 &
fi
"""


def build(
    format: str,
    text: str = "",
    *,
    metadata: Mapping[str, Any],
    public_url: str,
    ca_certificates: str | None = None,
    stoker_agent: bool = False,
    document_key: str = "",
) -> str:
    """
    Return the user data as text: a MIME message, the plain text of the format RAW, or an Ignition configuration.

    ``text``: the user's own user data. ``stoker_agent``: install Stoker's agent, which verifies published documents
    with ``document_key``: ``<server id>.<secret>``. ``ca_certificates``: certificates (PEM) that verify ``public_url``,
    if servers do not trust its CA already.
    """
    if format == RAW:
        return text
    if format == SOFTWARE_CONFIG and (ignition := _ignition(text)) is not None:
        return _with_metadata(ignition, metadata)
    parts = [
        create_part(_CLOUD_CONFIG, "cloud-config", "cloud-config"),
        create_part(_BOOTHOOK, "boothook.sh", "cloud-boothook"),
        create_part(_PART_HANDLER, "part-handler.py", "part-handler"),
    ]
    if format == HEAT_CFNTOOLS:
        parts += [
            create_part(text, "cfn-userdata", _INITDATA),
            create_part(_LOG_USERDATA, "loguserdata.py", "x-shellscript"),
        ]
    else:
        parts += _own_parts(text)
    if metadata:
        parts.append(create_part(json.dumps(metadata), _METADATA, _INITDATA))
    if format == HEAT_CFNTOOLS:
        parts += [
            create_part(f"{public_url}/cfn/v1/", "cfn-metadata-server", _INITDATA),
            create_part(_boto(public_url), "cfn-boto-cfg", _INITDATA),
        ]
    if stoker_agent:
        parts += _agent_parts(public_url, document_key, ca_certificates or "")
    # The boundary derives from the content, so equal content gives equal text.
    digest = hashlib.sha256("".join(part.as_string() for part in parts).encode()).hexdigest()
    return MIMEMultipart(boundary=f"==============={digest[:32]}==", _subparts=parts).as_string()


def _agent_parts(public_url: str, document_key: str, ca_certificates: str) -> Iterator[MIMEText]:
    options = ""
    if document_key:
        yield create_part(document_key, _DOCUMENT_KEY, _INITDATA)
        options = f" --document-key {_PLACES[0]}/{_DOCUMENT_KEY}"
    if ca_certificates:
        options += f" --ca-file {_CA_FILE}"
    script = _STOKER_AGENT.format(
        url=public_url,
        options=options,
        ca_file=_CA_FILE if ca_certificates else "",
        ca_certificates=ca_certificates,
    )
    yield create_part(script, "stoker-agent.sh", "x-shellscript")


def _own_parts(text: str) -> list[MIMEText]:
    """Return the parts of a MIME message one by one; any other text as one part, whose type cloud-init detects."""
    if not email.message_from_string(text).is_multipart():
        return [create_part(text, "", "plain")]
    return [create_part(content, filename or "", subtype) for content, filename, subtype in walk_parts(text)]


def walk_parts(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield the content, the filename and the subtype of each part of a MIME message."""
    for part in email.message_from_string(text).walk():
        if not part.is_multipart():
            raw = part.get_payload(decode=True)
            content = raw.decode(errors="replace") if isinstance(raw, bytes) else str(part.get_payload())
            yield content, part.get_filename(), part.get_content_subtype()


def create_part(text: str, filename: str | None, subtype: str) -> MIMEText:
    """Return a part of a MIME message; without a filename, it has no disposition."""
    part = MIMEText(text, subtype, "us-ascii" if text.isascii() else "utf-8")
    if filename is not None:
        part.add_header("Content-Disposition", "attachment", filename=filename)
    return part


def _boto(public_url: str) -> str:
    host = public_url.partition("://")[2].partition("/")[0].partition(":")[0]
    secure = int(public_url.startswith("https://"))
    return (
        f"[Boto]\ndebug = 0\nis_secure = {secure}\nhttps_validate_certificates = 1\n"
        f"cfn_region_name = heat\ncfn_region_endpoint = {host}\n"
    )


def _ignition(text: str) -> dict[str, Any] | None:
    try:
        document = decode(text.encode(), "user data")
    except Invalid:
        return None
    version = document.get("ignition", {}) if isinstance(document, dict) else {}
    return document if isinstance(version, dict) and "version" in version else None


def _with_metadata(ignition: dict[str, Any], metadata: Mapping[str, Any]) -> str:
    data = base64.b64encode(json.dumps(metadata).encode()).decode()
    source = f"data:;base64,{data}"
    owner = {"id": 0}
    files = [
        {
            "filesystem": "root",
            "path": f"{place}/{_METADATA}",
            "mode": 0o640,
            "user": owner,
            "group": owner,
            "contents": {"source": source},
        }
        for place in _PLACES
    ]
    storage = ignition.get("storage") if isinstance(ignition.get("storage"), dict) else {}
    own_files = storage.get("files") if isinstance(storage, dict) and isinstance(storage.get("files"), list) else []
    return json.dumps({**ignition, "storage": {**(storage or {}), "files": [*(own_files or []), *files]}})
