"""Unknown and unavailable resource types of a template: one error per type, or for all that need a cloud."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stoker.catalog.entry import SCHEME
from stoker.hot import Definition, Flaw
from stoker.hot.words import clip, did_you_mean
from stoker.resources.cloud_base import NO_CLOUD
from stoker.resources.nested_base import is_template_name

#: Services of OpenStack that Stoker does not provide, by prefix of their types.
_NOT_MADE = {
    "OS::Neutron::": "such things of Neutron",
    "OS::Nova::": "such things of Nova",
    "OS::Cinder::": "such things of Cinder",
    "OS::Glance::": "such things of Glance",
    "OS::Keystone::": "users or projects",
    "OS::Octavia::": "load balancers",
    "OS::Barbican::": "such things of Barbican",
    "OS::Designate::": "DNS names",
    "OS::Manila::": "shares",
    "OS::Magnum::": "clusters",
    "OS::Trove::": "databases",
    "OS::Aodh::": "alarms",
    "OS::Mistral::": "workflows",
    "OS::Heat::AutoScalingGroup": "groups that scale by themselves",
    "AWS::": "such things of AWS",
}
_MAP_IT = "map the type to OS::Heat::None, or to a template, in the environment's resource_registry."
_NO_ENTRY = "The catalogue has no such entry: `stoker catalog list` shows all entries."
_NO_CLOUD = f"N{NO_CLOUD[1:]}; or map the types to others in the environment's resource_registry."
#: Maximum number of resources that one error lists.
_FEW = 5


class UnknownTypes:
    """Collects the unknown types of a template."""

    def __init__(self, names: Collection[str]) -> None:
        self._known = names
        self._resources: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
        #: Type → resources, for types that need a cloud on a site without one.
        self._without_cloud: dict[str, list[tuple[str, str]]] = {}

    def add(self, definition: Definition, resolved: str | None, within: str, top: str | None) -> None:
        """
        Add a resource with an unknown type.

        ``resolved``: the type to which the environment maps the declared type; None if the environment removes it.
        ``within``: the place of the nested template, whose resource in the outermost template is ``top``.
        """
        self._resources.setdefault((definition.type, resolved), []).append(_place(definition, within, top))

    def add_without_cloud(self, definition: Definition, within: str, top: str | None) -> None:
        """Add a resource whose type needs a cloud, which this site does not have."""
        self._without_cloud.setdefault(definition.type, []).append(_place(definition, within, top))

    def flaws(self) -> Iterator[Flaw]:
        """Yield one error for each unknown type, and one for all types that need a cloud."""
        if self._without_cloud:
            types = "; ".join(f"{clip(name)} ({_names(places)})" for name, places in self._without_cloud.items())
            first = next(iter(self._without_cloud.values()))[0]
            yield Flaw(f"These resources need a cloud: {types}. {_NO_CLOUD}", ("resources", first[1], "type"))
        for (declared, resolved), resources in self._resources.items():
            mapped = f" (mapped to {resolved})" if resolved not in (None, declared) else ""
            sentence = (
                f"The Resource Type ({clip(declared)}{mapped}) could not be found. "
                f"Resources of that type: {_names(resources)}. {self._remedy(declared, resolved)}"
            )
            yield Flaw(sentence, ("resources", resources[0][1], "type"))

    def _remedy(self, declared: str, resolved: str | None) -> str:
        if resolved is None:
            return "The environment's resource_registry removes it."
        if is_template_name(resolved):
            return _NO_ENTRY if resolved.startswith(SCHEME) else "It is a template, and no such file came with it."
        service = resolved.rpartition("::")[0]
        if hint := did_you_mean(resolved, [name for name in self._known if name.rpartition("::")[0] == service]):
            return f"D{hint[3:]}"
        for prefix, things in _NOT_MADE.items():
            if resolved.startswith(prefix):
                return f"Stoker makes no {things}: {_MAP_IT}"
        if hint := did_you_mean(resolved, self._known):
            return f"D{hint[3:]}"
        return f"M{_MAP_IT[1:]}"


def _place(definition: Definition, within: str, top: str | None) -> tuple[str, str]:
    """Return the resource's name with its place, and the name of the resource in the outermost template."""
    name = f"{within}resources.{definition.name}" if within else definition.name
    return name, top or definition.name


def _names(resources: list[tuple[str, str]]) -> str:
    names = ", ".join(name for name, _ in resources[:_FEW])
    return f"{names} and {len(resources) - _FEW} more" if len(resources) > _FEW else names
