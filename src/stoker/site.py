"""What transports and resource types are told of this installation: URLs, and the logins that stand for resources."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from stoker.identity import ec2, stack_users
from stoker.identity.directory import DOMAIN_ID
from stoker.identity.stack_users import StackUsers
from stoker.model.arn import Arn
from stoker.transports.base import Login, Messaging, Objects, Party, Queues

REGION = "RegionOne"


@dataclass(frozen=True, slots=True)
class ThisSite:
    public_url: str
    users: StackUsers
    objects: Objects
    queues: Queues
    #: None where the messaging service is another's.
    messaging: Messaging | None
    #: Where agents log in, without the version.
    identity_url: str
    region: str = REGION
    has_objects: bool = True
    has_queues: bool = True

    @property
    def auth_url(self) -> str:
        return f"{self.identity_url}/v3"

    @property
    def keeps_users(self) -> bool:
        return self.identity_url in ("", f"{self.public_url}/identity")

    def login(self, party: Party) -> Login:
        id = stack_users.user_id(party.resource_id)
        user = party.user
        return Login(
            user_id=user.user_id if user else id,
            username=party.name if user else f"{party.stack_name}-{party.resource_name}",
            password=self.users.password(party.resource_id),
            project_id=user.project_id if user else party.project_id,
            domain_id=user.domain_id if user else DOMAIN_ID,
            access_key=id,
            secret_key=self.users.secret_key(party.resource_id),
        )

    def signed_url(self, party: Party, kind: str, verb: str) -> str:
        arn = str(Arn(party.project_id, party.stack_name, party.stack_id, party.resource_name))
        base = urlsplit(self.public_url)
        path = f"{base.path}/cfn/v1/{kind}/{arn}"
        login = self.login(party)
        params = {"SignatureMethod": "HmacSHA256", "AWSAccessKeyId": login.access_key, "SignatureVersion": "2"}
        if party.run:
            params["Run"] = party.run
        signature = ec2.signed_v2(login.secret_key, verb, base.netloc.lower(), path, params)
        return f"{base.scheme}://{base.netloc.lower()}{quote(path)}?{urlencode({**params, 'Signature': signature})}"
