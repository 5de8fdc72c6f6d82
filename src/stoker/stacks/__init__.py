"""Stacks: plan (pure), advance, rollback, events, outputs; the door for signals."""
