"""As the package itself: whatever is taken of it is Any."""

from typing import Any

def __getattr__(name: str) -> Any: ...
