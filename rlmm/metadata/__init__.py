"""
What Kafka means by remote log metadata: records, states, queries. Pure: no I/O, no clock, no tasks.

`codec` turns record values into events and back, `shard` holds the state of one metadata partition
and answers queries, `verdicts` are what becomes of an event.
"""
