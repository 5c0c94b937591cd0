"""Batch copies of cold segments to an object store; so far the names of the objects."""
