"""
Remote log metadata in Kafka's meaning: records, states, queries. Pure: no I/O, no clock, no tasks.

`decoding` and `encoding` turn record values into events and back; a `shard` holds the state of one
metadata partition and answers queries.

May be imported by every package above it in the layers of `pyproject.toml`.

- `assignment`: The user partitions of a service, and the metadata partitions that it reads for
  them.
- `decoding`: Record values to events, as tolerantly as Kafka's decoder and no more.
- `derived`: Derived parts of a user partition's state.
- `encoding`: Events to record values, byte for byte as Kafka's own serialiser writes them.
- `ended_partitions`: User partitions of which nothing is left but their finished deletion.
- `epoch_state`: One leader epoch of one user partition.
- `event_admission`: Admission of a writer's event, which is refused where the state machine would
  reject it.
- `events`: The events of `__remote_log_metadata`, one class per record kind.
- `fast_decoding`: The fast way from a record value to the parts that a handler needs, without
  decoding what is only stored.
- `ids`: The identities of Kafka's tiered storage.
- `image`: State images.
- `image_reading`: State images back to state.
- `misplaced`: User partitions whose events belong to another metadata partition.
- `native_answers`: The answers of a shard on the native core.
- `native_partitions`: User partitions in the native core.
- `native_shard`: A shard on the native core; no service uses it yet.
- `oldest`: The oldest open copy of a user partition.
- `open_record_set`: A record set in work.
- `outcomes`: Outcomes in Kafka's own classes for our verdicts and errors, exceptions included.
- `page_order_cache`: Kept orders of listings by page.
- `paging`: Listings by page.
- `partition_state`: All state of one user partition.
- `partitioner`: The metadata partition of a user partition.
- `python_shard`: The pure-Python shard.
- `record_layout`: The constants of the record form that reading and writing share.
- `report`: The report of a shard about its record sets: counts, position, and what was not applied.
- `row`: One segment as an immutable row of bytes.
- `segment`: Segments and their states.
- `shard_answers`: The questions that a shard answers, and listings that are made in pieces.
- `slots`: A sorted map from offset to segment id.
- `state_check`: The checker of the state machine's own rules.
- `txn_index_skips`: Runs of segments of one leader epoch without a transaction index.
- `varint`: Kafka's unsigned varints.
- `verdicts`: Verdicts of the state machine on an event.
- `view`: User partitions as one reader sees them over a shard that holds them all.
"""
