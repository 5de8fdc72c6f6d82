"""Stacks: the engine, templates, queries, operations, signals, triggers and nested stacks."""
