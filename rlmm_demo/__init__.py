"""
`rlmm demo`: nine screens, each with a claim, the real command, a figure and a tick.

An unmodified Kafka broker with our plugins takes part where Maven and a JDK are installed;
otherwise a made-up broker writes the segments, and no stock consumer reads them. A report ends it.

Nothing imports it.

- `broker`: An unmodified broker: its jars, its process, its tools.
- `command`: The command: the world, the screens in their order, the report.
- `history`: `rlmm demo --history`, a recorded history in memory.
- `report`: The report, from plain values.
- `screens`: The nine screens.
- `world`: The service, the store and the records that the screens act on.
"""
