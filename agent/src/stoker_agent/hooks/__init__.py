"""
Built-in hooks: one module per group; ``docker-cmd`` is in ``docker_cmd``.

``stoker_agent.hook_contract`` describes what a hook module contains.
"""
