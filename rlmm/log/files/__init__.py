"""
The `files` log: the metadata topic in a folder of our own, in a Kafka broker's format; the default.

May be imported by every package above it in the layers of `pyproject.toml`.

- `files_log`: The `files` log.
- `log_folder`: The folder of a `files` log.
"""

from typing import TYPE_CHECKING

from rlmm.base.old_names import attributes_of

if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__)
