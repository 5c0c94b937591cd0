"""
The client in Java, written from `docs/wire-protocol.md` alone.

    running  compiles and runs the client by any JDK from 17 on
    story    the lines that the client prints after it has talked to a server
"""
