"""Whole numbers among settings: each is checked against its bounds. Pure."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_INT32_MAX: Final = 2**31 - 1


def require_whole_numbers(
    prefix: str, settings: DataclassInstance, **bounds: tuple[int, int]
) -> None:
    """
    Raise `ConfigError` for an `int` or `int | None` field out of *bounds*, named behind *prefix*.

    Bounds are 1 to the largest of 32 bits by default.
    """
    for field in fields(settings):
        if field.type not in {"int", "int | None"}:
            continue
        value = getattr(settings, field.name)
        low, high = bounds.get(field.name, (1, _INT32_MAX))
        is_unset = value is None and field.type != "int"
        if not is_unset and (type(value) is not int or not low <= value <= high):
            key = f"{prefix}{field.name}"
            msg = f"{key} must be a whole number from {low} to {high}, got {value!r}"
            raise ConfigError(msg)
