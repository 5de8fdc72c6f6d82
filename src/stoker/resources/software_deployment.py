"""OS::Heat::SoftwareDeployment: runs a config on a server and waits for the result."""

from __future__ import annotations

from stoker.resources.deployment_base import deployment_type

TYPE = deployment_type("OS::Heat::SoftwareDeployment", "Runs a software config on a server.")
