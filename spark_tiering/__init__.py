"""Batch copies of cold segments to an object store; so far what a copy is made of, no copying."""
