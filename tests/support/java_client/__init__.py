"""The client in Java, written from `docs/wire-protocol.md` alone; `running` runs it."""
