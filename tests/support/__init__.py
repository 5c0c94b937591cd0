"""Fakes, builders and tools of the tests; tested themselves in `tests/unit/support/`."""
