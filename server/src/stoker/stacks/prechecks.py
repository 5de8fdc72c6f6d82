"""Checks of the runs that a template plans against the policies and hooks of their servers, before the stack starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stoker.deployments.configs import expand_known, find_hook
from stoker.hot import UNKNOWN, Flaw, has_unknown, references, select
from stoker.model.config import COMPONENT, HOOK_OPTION, UNGROUPED, DeliveredHook, find_delivered_hook, needed_groups
from stoker.model.errors import DeploymentRefused, Invalid, StackValidationFailed
from stoker.model.server import Server
from stoker.model.stack import Stack
from stoker.policy import rules
from stoker.policy.authorizer import AuthorizationRequest, DeploymentAuthorizer
from stoker.policy.rules import PROJECT, SITE_DEFAULTS, Policy, SiteDefaults, Target, Tree
from stoker.resources.base import Properties
from stoker.resources.roles import ProvidesConfig, ProvidesServer, RunsConfig
from stoker.stacks.templates.outline import Outline, OutlinedResource
from stoker.store import configs, servers
from stoker.store.tx import Tx

#: The first action of a deployment, and that of an update.
_CREATE, _UPDATE = "CREATE", "UPDATE"
_EVERY_ACTION = (_CREATE, _UPDATE, "DELETE", "SUSPEND", "RESUME")


#: Programs that built-in hooks call: any of them suffices.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "ansible": ("ansible-playbook",),
    "apply-config": ("os-apply-config",),
    "cfn-init": ("cfn-init",),
    "chef": ("chef-client",),
    "docker-cmd": ("docker",),
    "docker-compose": ("docker-compose", "docker"),
    "package": ("apt-get", "dnf"),
    "puppet": ("puppet",),
    "salt": ("salt-call",),
    "service": ("systemctl",),
}


class PlannedDeployment(Struct, frozen=True, kw_only=True):
    """A deployment of a template to a server with a known id, or to a server of the same template."""

    #: Name of the resource in the outermost template.
    top: str
    #: The place of the deployment, and the property that names the server.
    resource_place: str
    key: str
    #: None for a server of the same template, unless an enrolled server has its name.
    server_id: str | None = None
    #: The resource of the server in the same template, its property ``name`` if it may come to represent the enrolled
    #: server of this name, and the policy that the template declares. None: no such policy; UNKNOWN: not known yet.
    own_server: str | None = None
    server_name: str | None = None
    policy: Any = None
    #: The id of a config that exists already.
    config_id: str | None = None
    #: Group of the config; None if not known yet.
    group: str | None = None
    #: The config and its options as far as known, and the actions that run when the deployment is created.
    config: Any = None
    options: Any = None
    actions: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The place of the property that names the server."""
        return f"{self.resource_place}.properties.{self.key}"


def plan_deployments(outline: Outline, within: str = "", top: str | None = None) -> Iterator[PlannedDeployment]:
    """
    Yield a template's deployments to servers that it names by id, or to its own servers, at any depth. ``within``: the
    place of a nested template, ``top`` its resource in the outermost one. Raises Invalid.
    """
    for name, resource in outline.resources.items():
        place = f"{within}resources.{name}"
        if isinstance(resource.type, RunsConfig):
            if resource.definition.external_id is None:
                yield from _plan(resource, resource.type, outline.resources, top or name, place)
        elif resource.inside is not None:
            yield from plan_deployments(resource.inside, f"{place}<{resource.inside.file}>.", top or name)


def _plan(
    resource: OutlinedResource, kind: RunsConfig, resources: Mapping[str, OutlinedResource], top: str, place: str
) -> Iterator[PlannedDeployment]:
    """Yield a deployment, or those of a group. ``resources`` are those of the template."""
    properties, written = resource.properties, resource.definition.properties
    planned = _with_content(
        PlannedDeployment(top=top, resource_place=place, key=""), properties.get("config"), written, resources
    )
    actions = properties.get("actions")
    if isinstance(actions, list):
        if planned.group != COMPONENT and _CREATE not in actions:
            return  # nothing runs at creation, and the policy may change before a later run
        planned = replace(planned, actions=tuple(str(action) for action in actions))
    for key, id in kind.servers(properties).items():
        if isinstance(id, str) and id:
            yield replace(planned, key=key, server_id=id)
            continue
        name = _find_reference(select(written, key.split(".", 1)))
        server = resources.get(name)
        if server is not None and isinstance(server.type, ProvidesServer):
            yield _with_own_server(replace(planned, key=key, own_server=name), server.type, server.properties)


def _with_content(
    planned: PlannedDeployment, id: Any, written: Properties, resources: Mapping[str, OutlinedResource]
) -> PlannedDeployment:
    """Return the planned deployment with what is known of its config, whose ``id`` may be UNKNOWN."""
    own = resources.get(_find_reference(select(written, ("config",))))
    if own is None:
        return replace(planned, config_id=id if isinstance(id, str) and id else None)
    if not isinstance(own.type, ProvidesConfig):
        return planned
    config = expand_known(own.type.declare(own.properties))
    group = None if config["group"] is UNKNOWN else config["group"] or UNGROUPED
    return replace(planned, group=group, config=config["config"], options=config["options"])


def _with_own_server(planned: PlannedDeployment, kind: ProvidesServer, properties: Properties) -> PlannedDeployment:
    value, name = properties.get(rules.NAME), properties.get("name")
    policy = value if value is None else UNKNOWN if has_unknown(value) else rules.read(value)
    is_named = kind.may_be_enrolled and isinstance(name, str) and name
    return replace(planned, policy=policy, server_name=name if is_named else None)


def _find_reference(written: Any) -> str:
    """Return the name of the only resource that a value of a template refers to; "" if there is not exactly one."""
    names = references(written)
    return next(iter(names)) if len(names) == 1 else ""


def list_denied_by_template(outline: Outline) -> Iterator[Flaw]:
    """Yield the deployments that the policy of a server in the same template denies. Raises Invalid."""
    for planned in plan_deployments(outline):
        if reason := _deny_own(planned, None, SITE_DEFAULTS):
            yield Flaw(f"{planned.resource_place}: {reason}", ("resources", planned.top))


def _deny_own(deployment: PlannedDeployment, hook: DeliveredHook | None, site: SiteDefaults) -> str | None:
    """Return why a server of the template denies the deployment. The stack owns it: only groups and hooks count."""
    if deployment.group is None or deployment.own_server is None or deployment.policy is UNKNOWN:
        return None
    declared = deployment.policy or Policy()
    policy = Policy(allow=PROJECT, groups=declared.groups, hooks=declared.hooks)
    target = Target(id=deployment.own_server, name=deployment.own_server, project_id="")
    return rules.decide(policy, target, project_id="", stack=None, group=deployment.group, hook=hook, site=site)


@dataclass(frozen=True, slots=True)
class Prechecks:
    """Checks planned deployments of a stack, whose configs and servers ``of`` has looked up."""

    tx: Tx
    project_id: str
    planned: Sequence[PlannedDeployment]

    @classmethod
    def of(cls, tx: Tx, project_id: str, planned: Iterable[PlannedDeployment]) -> Prechecks:
        """Look up the configs and servers that exist already."""
        find_server_id = cache(partial(_find_server_id, tx, project_id))
        complete = [
            replace(
                _with_stored_content(tx, deployment, project_id),
                server_id=find_server_id(deployment.server_id, deployment.server_name),
            )
            for deployment in planned
        ]
        return cls(tx, project_id, complete)

    def list_missing_programs(self) -> list[str]:
        """Return a warning for each deployment whose server lacks the program that its hook calls."""
        warnings = [
            f"{deployment.place}: {reason}"
            for deployment, server, groups in self._list_needs()
            if server.project_id == self.project_id
            and (reason := _describe_missing_program(server, servers.load_facts(self.tx, server.id), groups))
        ]
        return list(dict.fromkeys(warnings))

    def refuse_missing_hooks(self) -> None:
        """Raise StackValidationFailed, with the place, for a deployment whose server certainly lacks the hook."""
        for deployment, server, groups in self._list_needs():
            self._refuse_missing(deployment, server, groups)

    def refuse_changed_hooks(self, stack: Stack) -> None:
        """
        Raise StackValidationFailed, with the place, for an existing deployment whose new config needs a missing hook,
        other than of groups that the stack's deployments on the server have already.
        """
        for deployment, server, groups in self._list_needs(_UPDATE):
            if server.describe_missing_hook(groups, self.project_id):
                present = configs.of_tree(self.tx, stack.root_id, server.id)
                needs = (needed_groups(one.group, one.config, one.options, _EVERY_ACTION) for one in present)
                self._refuse_missing(deployment, server, groups.difference(*needs))

    def _refuse_missing(self, deployment: PlannedDeployment, server: Server, groups: Iterable[str]) -> None:
        if reason := server.describe_missing_hook(groups, self.project_id):
            raise StackValidationFailed(f"{deployment.place}: {reason}")

    def _list_needs(self, action: str | None = None) -> Iterator[tuple[PlannedDeployment, Server, frozenset[str]]]:
        """Yield (deployment, server, groups whose hooks it needs) for the ``action``, by default the creation."""
        find_server = cache(partial(servers.find, self.tx))
        for deployment in self.planned:
            actions = deployment.actions or (_CREATE,)
            if action is not None:
                if deployment.group != COMPONENT and deployment.actions and action not in deployment.actions:
                    continue
                actions = (action,)
            groups = needed_groups(deployment.group, deployment.config, deployment.options, actions)
            server = find_server(deployment.server_id) if groups and deployment.server_id is not None else None
            if server is not None:
                yield deployment, server, groups

    def refuse_denied(self, authorizer: DeploymentAuthorizer, stack: Tree, actor: str, *, standing: bool) -> None:
        """
        Raise DeploymentRefused, with the place, for a deployment that a server's policy would deny;
        StackValidationFailed if the template's own server does, or a hook is missing. ``standing``: see
        ``AuthorizationRequest``.
        """
        checked: set[tuple[str, str | None, DeliveredHook | None]] = set()
        for deployment in self.planned:
            hook = self._find_hook(deployment)
            # The policy that the template declares for a server of its own decides in place of a stored one.
            is_declared = deployment.own_server is not None and deployment.policy is not None
            if deployment.server_id is None or is_declared:
                if reason := _deny_own(deployment, hook, authorizer.site):
                    raise StackValidationFailed(f"{deployment.place}: {reason}")
                continue
            run = (deployment.server_id, deployment.group, hook)
            if run in checked:
                continue
            checked.add(run)
            request = AuthorizationRequest(
                project_id=self.project_id,
                server_id=deployment.server_id,
                action="validate",
                group=deployment.group,
                hook=hook,
                stack_id=stack.id,
                stack_name=stack.name,
                tree=stack,
                standing=standing,
                actor=actor,
            )
            if refused := authorizer.check(self.tx, request):
                raise DeploymentRefused(f"{deployment.place}: {refused.message}", refused.decision)

    def _find_hook(self, deployment: PlannedDeployment) -> DeliveredHook | None:
        """Return the hook that the config delivers, as far as known."""
        options = deployment.options
        if deployment.config_id is not None:
            return find_delivered_hook(options) if options is not None else None
        option = options.get(HOOK_OPTION) if isinstance(options, Mapping) else None
        if option is None or has_unknown(option):
            return None
        try:
            return find_hook(self.tx, self.project_id, option)
        except Invalid as error:
            raise StackValidationFailed(f"{deployment.place}: {error.message}") from None


def _with_stored_content(tx: Tx, deployment: PlannedDeployment, project_id: str) -> PlannedDeployment:
    stored = configs.find(tx, deployment.config_id) if deployment.config_id is not None else None
    if stored is None or stored.project_id != project_id:
        return deployment
    return replace(deployment, group=stored.group or UNGROUPED, config=stored.config, options=stored.options)


def _find_server_id(tx: Tx, project_id: str, id: str | None, name: str | None) -> str | None:
    """Return the id of the server with this id or name, which may be unknown to Stoker; None: a new server."""
    if id is not None:
        return servers.resolve_id(tx, project_id, id)
    enrolled = servers.find_enrolled(tx, name, project_id) if name is not None else None
    return enrolled.id if enrolled else None


def may_represent_servers(outline: Outline) -> bool:
    """Return whether a resource may come to represent an enrolled server."""
    return any(
        isinstance(resource.type, ProvidesServer) and resource.type.may_be_enrolled for resource in outline.list_all()
    )


def _describe_missing_program(server: Server, facts: Mapping[str, Any], groups: Iterable[str]) -> str | None:
    """Return which program a built-in hook would miss on the server according to its facts, or None."""
    tools = facts.get("tools")
    if not isinstance(tools, Mapping):
        return None
    for group in sorted(groups):
        programs = PROGRAMS.get(group, ())
        if programs and not any(program in tools for program in programs):
            return f"server {server.name!r} has no {' or '.join(programs)}, which the hook of the group {group!r} calls"
    return None
