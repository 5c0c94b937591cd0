"""
`rlmm demo`: one story in nine screens, each with a claim, the real command, a figure and a tick.

A real Kafka broker with our plugins takes part where Maven and a JDK are there; else the segments
are those of a made-up broker, and nobody consumes. At the end stands a report.

    command     the command: which world, the screens in their order, the report
    stage       how a screen is told, and what is kept of it for the report
    screens/    the nine, one module each
    world       what a screen may ask for; `with_broker` and `made_up` are the two there are
    broker/     an unmodified broker: its jars, its process, its own tools
    service     `rlmm serve` as anybody starts it
    store       a bucket, or a folder
    records     what is produced, and the checksum of what is read
    events      metadata that comes past the service
    watching    how a start goes: replay, refusals, look-ups beside it
    commands    commands as an operator runs them
    report/     PURE. The report, from plain values
    small_broker  a log folder for examples
    history     `--history`: a recorded history in memory
"""
