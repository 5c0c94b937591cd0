"""
The `files` log: the metadata topic in a folder of our own, in the format of a Kafka broker. The
default.

May be imported by every package above it in the layers of `pyproject.toml`.

- `files_log`: The `files` log.
- `log_folder`: The folder of a `files` log.
"""
