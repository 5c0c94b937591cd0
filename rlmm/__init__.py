"""
Holds and answers the metadata of Kafka's tiered storage, the topic `__remote_log_metadata`.

`rlmm.open` is the library, see `rlmm.library`. Nothing heavy is imported before it is asked for:
`import rlmm` costs nothing and gives the version, whose only place this is.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlmm.library import open_metadata as open  # noqa: A004  # rlmm.open is meant

__all__ = ["__version__", "open"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the library when it is first asked for."""
    if name == "open":
        from rlmm.library import open_metadata  # noqa: PLC0415

        return open_metadata
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
