"""
The world of the demonstration: a service, a store, topics and their records.

May be imported by `rlmm_demo.broker`, `rlmm_demo.screens`.

- `events`: Events that other brokers write into the metadata topic.
- `made_up_world`: The world without a broker.
- `records`: The records of the demonstration, and their checksum.
- `segment_reading`: A program that reads the tier without a broker.
- `service`: A process of `rlmm serve`, with a client and HTTP.
- `small_broker`: A small log folder in a broker's form, for examples.
- `store`: A bucket on this machine, or a folder.
- `world`: The interface of a world, the part that both worlds share, and `rlmm` commands.
"""
