"""
Proof that an implementation answers as Kafka's metadata manager does, or differs only where a named
rule says so.

Scenarios, golden records and partitioner vectors are data; any implementation can be put behind an
`Engine`. A step that differs from Kafka counts as documented only when a literal model of Kafka,
with the named rule as a switch, proves it.
"""
