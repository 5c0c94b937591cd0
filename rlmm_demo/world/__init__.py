"""
What the demonstration acts on: a service, a store, topics and their records.

May be imported by `rlmm_demo.broker`, `rlmm_demo.screens`.

- `commands`: Commands that `rlmm demo` runs as an operator would, each in a process of its own.
- `events`: Metadata that reaches the log of the demonstration past every service, as other
  brokers write it.
- `made_up_world`: The demonstration's world without a broker.
- `records`: What the demonstration produces, and the checksum by which all that is read is
  judged.
- `segment_reading`: Reads the tier of the demonstration without a broker, committed records
  alone, and prints partition, offset and value of each.
- `service`: The service behind `rlmm demo`.
- `small_broker`: A small log folder as a broker has it, for examples.
- `store`: Where the demonstration keeps objects.
- `world`: What the screens of the demonstration ask of the world they play in, and what its two
  forms share.
"""
