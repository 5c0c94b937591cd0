"""
The log that the events live in: one protocol, kept by memory, by our own files, or by Kafka.

May be imported by every package above it in the layers of `pyproject.toml`.

- `history_reader`: A log for who asks what happened in it, beside those who follow it.
- `new_ids`: Ids that a log of our own is born with, made the way Kafka makes its own.
- `protocol`: The protocol of the log that the events live in, whoever keeps it.
- `reconnect_backoff`: Pauses between attempts to reach a log, which end early where there is a
  sign that it is back.
- `replay_progress`: How far a metadata partition is read, and the facts that follow from it.
- `request_checks`: What is no log, and what none may be asked.
- `files`: The `files` log.
- `kafka`: The `kafka` log.
- `memory`: The `memory` log.
"""
