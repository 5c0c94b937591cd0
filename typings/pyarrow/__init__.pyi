"""pyarrow ships no types: whatever is taken of it is Any, and may stand as a type."""

from typing import Any

def __getattr__(name: str) -> Any: ...
