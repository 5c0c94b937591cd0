"""
The log that the events live in: one protocol, kept by memory, by our own files, or by Kafka.

May be imported by every package above it in the layers of `pyproject.toml`.

- `batch_proof`: The proof that a log still holds the batch on which a state stands.
- `files`: The `files` log.
- `history_reader`: A reader of a log's history that neither waits for nor delays its followers.
- `kafka`: The `kafka` log.
- `memory`: The `memory` log.
- `new_ids`: Ids that a log of our own is born with, made the way Kafka makes its own.
- `protocol`: The protocol of the log of events.
- `reconnect_backoff`: Pauses between attempts to reach a log.
- `replay_progress`: Progress of the replay of a metadata partition.
- `request_checks`: Checks of requests to a log, before any I/O.
- `shard_images`: The parts of a shard at one moment, and where they come from.
"""
