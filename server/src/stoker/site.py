"""This site as transports and resource types use it: URLs, credentials and services."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from stoker.identity import ec2, stack_users
from stoker.identity.directory import DOMAIN_ID
from stoker.identity.stack_users import StackUsers
from stoker.model.arn import Arn
from stoker.transports.base import Login, Messaging, Objects, Queues, TransportTarget

REGION = "RegionOne"


@dataclass(frozen=True, slots=True)
class LocalPlatform:
    """The implementation of ``transports.base.Platform``."""

    public_url: str
    users: StackUsers
    objects: Objects
    queues: Queues
    #: None unless the embedded messaging service is used.
    messaging: Messaging | None
    #: The base URL of the identity API that agents log in to, without the version.
    identity_url: str
    region: str = REGION
    has_objects: bool = True
    has_queues: bool = True
    #: The certificates (PEM) that verify ``public_url``; None if servers trust its CA already.
    ca_certificates: str | None = None

    @property
    def auth_url(self) -> str:
        """The URL at which agents log in."""
        return f"{self.identity_url}/v3"

    @property
    def keeps_users(self) -> bool:
        """Whether users and projects are Stoker's own."""
        return self.identity_url in ("", f"{self.public_url}/identity")

    def login(self, target: TransportTarget) -> Login:
        """Return the credentials of the target's Keystone user, or of Stoker's own user for the resource."""
        id = stack_users.user_id(target.resource_id)
        user = target.user
        return Login(
            user_id=user.user_id if user else stack_users.user_id(target.resource_id, target.run),
            username=target.name if user else f"{target.stack_name}-{target.resource_name}",
            password=self.users.password(target.resource_id),
            project_id=user.project_id if user else target.project_id,
            domain_id=user.domain_id if user else DOMAIN_ID,
            access_key=id,
            secret_key=self.users.secret_key(target.resource_id),
        )

    def signed_url(self, target: TransportTarget, kind: str, verb: str) -> str:
        """Return a URL with an EC2 signature of version 2, signed by the target's user; see ``Platform.signed_url``."""
        arn = str(Arn(target.project_id, target.stack_name, target.stack_id, target.resource_name))
        base = urlsplit(self.public_url)
        path = f"{base.path}/cfn/v1/{kind}/{arn}"
        login = self.login(target)
        params = {"SignatureMethod": "HmacSHA256", "AWSAccessKeyId": login.access_key, "SignatureVersion": "2"}
        if target.run:
            params["Run"] = target.run
        signature = ec2.sign_v2(login.secret_key, verb, base.netloc.lower(), path, params)
        return f"{base.scheme}://{base.netloc.lower()}{quote(path)}?{urlencode({**params, 'Signature': signature})}"
