"""
The idempotent producer of single partitions.

May be imported by `rlmm.kafka_client.fetch`, `rlmm.log.kafka`.

- `partition_appends`: The appends to one partition.
- `producer`: The idempotent producer.
"""
