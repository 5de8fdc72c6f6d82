"""Heat's orchestration API v1, with Stoker's own additions: its routes, the most frequent ones first."""

from __future__ import annotations

from stoker.http.access import (
    AGENT,
    AGENT_KEY,
    MEMBER,
    READ,
    READER,
    SIGNAL_TOKEN,
    SIGNAL_URL,
    SITE_ADMIN,
    TOKEN,
    WRITE,
    Access,
    InProject,
)
from stoker.http.api import Route
from stoker.http.heat import (
    configs,
    deployments,
    events,
    previews,
    resources,
    runs,
    site,
    stack_graph,
    stack_lookup,
    stack_operations,
    stacks,
    types,
)
from stoker.http.threads import TEMPLATES

#: Heat permits these routes to the users of servers, too.
_READ_OR_AGENT = Access(TOKEN, allow=InProject(READER, AGENT))
_SIGNAL = Access(SIGNAL_TOKEN, TOKEN, allow=InProject(MEMBER, AGENT))
#: Also the signal URL of the deployment's config, and agents' keys.
_SIGNAL_DEPLOYMENT = Access(SIGNAL_URL, SIGNAL_TOKEN, TOKEN, AGENT_KEY, allow=InProject(MEMBER, AGENT))

_CONFIGS = "/v1/{project}/software_configs"
_CONFIG = _CONFIGS + "/{config_id}"
_DEPLOYMENTS = "/v1/{project}/software_deployments"
_DEPLOYMENT = _DEPLOYMENTS + "/{deployment_id}"
_TYPES = "/v1/{project}/resource_types"
_VERSIONS = "/v1/{project}/template_versions"
_STACKS = "/v1/{project}/stacks"
_NAMED = _STACKS + "/{stack_name}"
_STACK = _NAMED + "/{stack_id}"
_SNAPSHOT = _STACK + "/snapshots/{snapshot_id}"
_RESOURCE = _STACK + "/resources/{resource_name}"

#: The path may name a stack by name or id alone, also with one of these segments after it.
_BELOW = ("resources", "events", "template", "actions", "environment", "files", "outputs")
_REDIRECTED = (("GET", _READ_OR_AGENT), ("POST", WRITE), ("PUT", WRITE), ("PATCH", WRITE), ("DELETE", WRITE))
#: A request with a template contains all its files.
_TEMPLATE_LIMIT = 4 * 1024 * 1024
#: A result may contain the whole output of a run.
_SIGNAL_LIMIT = 2 * 1024 * 1024

ROUTES = [
    Route("GET", _DEPLOYMENTS + "/metadata/{server_id}", _READ_OR_AGENT, deployments.metadata),
    Route("POST", _CONFIGS, WRITE, configs.create),
    Route("POST", _DEPLOYMENTS, WRITE, deployments.create),
    Route("GET", _DEPLOYMENT, READ, deployments.show),
    Route("PUT", _DEPLOYMENT, WRITE, deployments.update, action="change deployment"),
    Route("DELETE", _DEPLOYMENT, WRITE, deployments.delete, action="delete deployment"),
    Route("GET", _DEPLOYMENT + "/runs", READ, runs.index),
    Route("POST", _DEPLOYMENT + "/cancel", WRITE, runs.cancel, action="cancel deployment"),
    Route("POST", _DEPLOYMENT + "/retry", WRITE, runs.retry, action="retry deployment"),
    Route("POST", _DEPLOYMENT + "/signal", _SIGNAL_DEPLOYMENT, runs.signal, _SIGNAL_LIMIT),
    Route("GET", _DEPLOYMENTS, READ, deployments.index),
    Route("GET", _CONFIGS, READ, configs.index),
    Route("GET", _CONFIG, READ, configs.show),
    Route("DELETE", _CONFIG, WRITE, configs.delete, action="delete config"),
    Route("GET", _TYPES, READ, types.index),
    Route("GET", _TYPES + "/{type_name}", READ, types.show),
    Route("GET", _TYPES + "/{type_name}/template", READ, types.template),
    Route("GET", _VERSIONS, READ, types.versions),
    Route("GET", _VERSIONS + "/{version}/functions", READ, types.functions),
    Route("POST", "/v1/{project}/validate", READ, types.validate, _TEMPLATE_LIMIT, limit=TEMPLATES),
    Route("GET", "/v1/{project}/build_info", READ, site.build_info),
    Route("GET", "/v1/{project}/services", SITE_ADMIN, site.services),
    Route("GET", _STACKS, READ, stacks.index),
    Route("POST", _STACKS, WRITE, stacks.create, _TEMPLATE_LIMIT, limit=TEMPLATES),
    Route("GET", _STACKS + "/detail", READ, stacks.index),
    Route("POST", _STACKS + "/preview", READ, previews.create, _TEMPLATE_LIMIT, limit=TEMPLATES),
    # A member's right, because the previews are runs on servers.
    Route("POST", _STACKS + "/server_previews", WRITE, previews.create_on_servers, _TEMPLATE_LIMIT, limit=TEMPLATES),
    *(
        Route(verb, _NAMED + rest, access, stack_lookup.redirect, _TEMPLATE_LIMIT)
        for verb, access in _REDIRECTED
        for rest in ("", *(f"/{segment}" for segment in _BELOW))
    ),
    Route("GET", _STACK, READ, stacks.show),
    Route("PUT", _STACK, WRITE, stacks.replace, _TEMPLATE_LIMIT, limit=TEMPLATES),
    Route("PATCH", _STACK, WRITE, stacks.change, _TEMPLATE_LIMIT, limit=TEMPLATES),
    Route("DELETE", _STACK, WRITE, stacks.delete),
    Route("PUT", _STACK + "/preview", WRITE, previews.replace_it, _TEMPLATE_LIMIT, limit=TEMPLATES),
    Route("PATCH", _STACK + "/preview", WRITE, previews.change, _TEMPLATE_LIMIT, limit=TEMPLATES),
    Route("POST", _STACK + "/actions", WRITE, stack_operations.act),
    Route("DELETE", _STACK + "/abandon", WRITE, stacks.abandon, action="abandon stack"),
    Route("GET", _STACK + "/export", WRITE, stacks.export),
    Route("POST", _STACK + "/snapshots", WRITE, stack_operations.create_snapshot, action="create snapshot"),
    Route("GET", _STACK + "/snapshots", READ, stack_operations.index_snapshots),
    Route("GET", _SNAPSHOT, READ, stack_operations.show_snapshot),
    Route("DELETE", _SNAPSHOT, WRITE, stack_operations.delete_snapshot, action="delete snapshot"),
    Route(
        "POST",
        _SNAPSHOT + "/restore",
        WRITE,
        stack_operations.restore_snapshot,
        limit=TEMPLATES,
        action="restore snapshot",
    ),
    Route("GET", _STACK + "/template", READ, stacks.template),
    Route("GET", _STACK + "/environment", READ, stacks.environment),
    Route("GET", _STACK + "/files", READ, stacks.files),
    Route("GET", _STACK + "/outputs", READ, stacks.list_outputs),
    Route("GET", _STACK + "/outputs/{output_key}", READ, stacks.show_output),
    Route("GET", _STACK + "/resources", READ, resources.index),
    Route("GET", _STACK + "/graph", READ, stack_graph.show),
    Route("GET", _RESOURCE, READ, resources.show),
    Route("PATCH", _RESOURCE, WRITE, resources.mark, action="mark resource"),
    Route("GET", _RESOURCE + "/metadata", _READ_OR_AGENT, resources.metadata),
    Route("POST", _RESOURCE + "/signal", _SIGNAL, resources.signal),
    Route("GET", _STACK + "/events", READ, events.index),
    Route("GET", _RESOURCE + "/events", READ, events.index),
    Route("GET", _RESOURCE + "/events/{event_id}", READ, events.show),
]
