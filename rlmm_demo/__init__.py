"""
`rlmm demo`: one story in nine screens, each with a claim, the real command, a figure and a tick.

A real Kafka broker with our plugins takes part where Maven and a JDK are there; else the segments
are those of a made-up broker, and nobody consumes. At the end stands a report.

    command  the command: which world, the screens in their order, the report
    screens/    the nine, one module each
    broker/     an unmodified broker: its jars, its process, its own tools
    report/     PURE. The report, from plain values
    history  `--history`: a recorded history in memory

Nothing imports it.

- `broker`: An unmodified Kafka broker for the demonstration, fetched by Maven and run in a folder
  of its own.
- `report`: The report of a demo.
- `screens`: The nine screens of the demonstration, a module each.
- `world`: What the demonstration acts on.

Nothing imports it.
"""
