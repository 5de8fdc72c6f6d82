"""
The cloud of one machine: networks, ports, volumes and other objects of a cloud as rows of the database.

For development, together with local servers: templates for a cloud run unchanged. Nothing is filtered, routed or
attached. Objects that a template names without creating them (networks, images, flavors, security groups) exist.
"""
