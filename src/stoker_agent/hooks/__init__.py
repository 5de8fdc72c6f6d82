"""Hooks that come with the agent: one file a group, each also an executable of its own under any other agent."""
