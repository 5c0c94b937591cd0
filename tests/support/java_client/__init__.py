"""
The client in Java, written from `docs/wire-protocol.md` alone.

    running  runs the client by any JDK from 17 on, and checks its output
"""
