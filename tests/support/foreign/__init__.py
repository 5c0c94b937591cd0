"""Clients in other languages, written from `docs/wire-protocol.md` alone, and how they are run."""
