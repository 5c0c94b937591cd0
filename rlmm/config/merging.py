"""
Merging of layers into typed values: higher layers override lower ones, key by key.

Only types are checked here, not meaning; msgspec converts what is neither a text nor a number.
"""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from rlmm.base.secret import Secret
from rlmm.config.key_table import KEYS
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.config.kafka_names import KafkaSetting
    from rlmm.config.key_table import Key
    from rlmm.config.layers import Layer

_Reader = Callable[[object], object]

_SHOWN_CHARACTERS_MAX = 100
_INT64_MAX = 2**63 - 1
_BOOLS = dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True) | dict.fromkeys(
    ("false", "f", "no", "n", "off", "0"), False
)
_NOTHING = "none"
"""How a text says that a key is unset that a lower layer sets."""
_AMOUNT = re.compile(r"([0-9]{1,19})\s*([A-Za-z]{1,3})", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]{1,25}", re.ASCII)
_UNITS: dict[str, dict[str, int]] = {
    "ms": {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000},
    "bytes": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
}


def merged(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, KafkaSetting]]:
    """
    Return the typed value of every key that is set, and its source, both by name.

    *layers* are ordered from the highest down. Raises a one-line `ConfigError` for a wrong type.
    """
    given = dict(ChainMap(*(layer.values for layer in layers)))
    return {name: _typed(KEYS[name], setting) for name, setting in given.items()}, given


def _typed(key: Key, setting: KafkaSetting) -> object:
    if key.is_optional and not key.is_text and setting.value == _NOTHING:
        return None
    try:
        return _reader(key)(setting.value)
    except (ValueError, OverflowError):  # its text would show the value, which may be a secret
        msg = f"{setting} must be {_allowed(key)}, got {shown(key, setting.value)}"
        raise ConfigError(msg) from None


def shown(key: Key, value: object) -> str:
    """Return a value for a message: secrets are hidden, long values are cut."""
    if key.is_secret:
        return "***"
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS_MAX:
        return text
    return f"{text[:_SHOWN_CHARACTERS_MAX]}..."


def _allowed(key: Key) -> str:
    words = key.allowed
    if key.kind is int:
        units = _units(key)
        words += f" of 64 bits{', or one with a unit of ' if units else ''}{', '.join(units)}"
    return f"{words}, or {_NOTHING}" if key.is_optional and not key.is_text else words


def _units(key: Key) -> dict[str, int]:
    """Return the units that a text may give; the key's last word but `max` or `min` is its own."""
    words = key.name.removesuffix("_max").removesuffix("_min").split("_")
    return _UNITS.get(words[-1], {})


def _whole(key: Key) -> _Reader:
    def read(raw: object) -> object:
        if isinstance(raw, str):
            text = raw.strip()
            amount = _AMOUNT.fullmatch(text)
            if amount is not None and amount.group(2) in _units(key):
                raw = int(amount.group(1)) * _units(key)[amount.group(2)]
            elif _WHOLE.fullmatch(text):
                raw = int(text)
        _require(type(raw) is int and -_INT64_MAX - 1 <= raw <= _INT64_MAX)
        return raw

    return read


def _require(is_right: bool) -> None:
    if not is_right:
        raise ValueError


def _float(raw: object) -> float:
    _require(isinstance(raw, int | float) or (isinstance(raw, str) and raw.isascii()))
    _require(not isinstance(raw, bool))
    value = float(cast("float | str", raw))
    _require(math.isfinite(value))
    return value


def _bool(raw: object) -> bool:
    if isinstance(raw, str):
        raw = _BOOLS.get(raw.lower(), raw)
    return msgspec.convert(raw, bool)


def _secret(raw: object) -> Secret:
    return raw if isinstance(raw, Secret) else Secret(_text(raw))


def _text(raw: object) -> str:
    """Return a text, also from a number that a TOML file has without quotes."""
    _require(isinstance(raw, str) or type(raw) is int)
    return str(raw)


def _path(raw: object) -> Path:
    _require(isinstance(raw, str) and bool(raw.strip()) and "\0" not in raw)
    return Path(cast("str", raw))


def _texts(raw: object) -> tuple[str, ...]:
    if isinstance(raw, str):
        return tuple(filter(None, (part.strip() for part in raw.split(","))))
    _require(isinstance(raw, list))
    return tuple(map(_text, cast("list[object]", raw)))


_READERS: dict[object, _Reader] = {
    float: _float,
    bool: _bool,
    str: _text,
    Secret: _secret,
    Path: _path,
    tuple[str, ...]: _texts,
}


def _reader(key: Key) -> _Reader:
    if key.kind is int:
        return _whole(key)
    return _READERS.get(key.kind) or (lambda raw: msgspec.convert(_text(raw), key.kind))
