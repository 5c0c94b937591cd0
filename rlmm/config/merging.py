"""
Merging of layers into typed values; the only module that imports pydantic.

Higher layers override lower ones, key by key. Only types are checked here, not meaning.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BeforeValidator, InstanceOf, ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from rlmm.config.keys import KEYS
from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.fields import FieldInfo

    from rlmm.config.kafka_names import KafkaSetting
    from rlmm.config.keys import Key
    from rlmm.config.layers import Layer

_Reader = Callable[[object], object]

_SHOWN_CHARACTERS_MAX = 100
_INT64_MAX = 2**63 - 1
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
    try:
        found = cast("Any", _MODEL)(layers=layers)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        key = KEYS[name]
        msg = f"{given[name]} must be {_allowed(key)}, got {shown(key, given[name].value)}"
        raise ConfigError(msg) from None  # its text would show the value, which may be a secret
    return {name: getattr(found, name) for name in found.model_fields_set}, given


def shown(key: Key, value: object) -> str:
    """Return a value for a message: secrets are hidden, long values are cut."""
    if key.is_secret:
        return "***"
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS_MAX:
        return text
    return f"{text[:_SHOWN_CHARACTERS_MAX]}..."


class _LayerSource(PydanticBaseSettingsSource):
    def __init__(self, settings_cls: type[BaseSettings], layer: Layer) -> None:
        super().__init__(settings_cls)
        self._layer = layer

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        given = self._layer.values.get(field_name)
        return None if given is None else given.value, field_name, False

    def __call__(self) -> dict[str, Any]:
        return {name: given.value for name, given in self._layer.values.items()}


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


def _only(is_right: Callable[[object], bool]) -> _Reader:
    def read(raw: object) -> object:
        _require(is_right(raw))
        return raw

    return read


def _text(raw: object) -> str:
    """Return a text, also from a number that a TOML file has without quotes."""
    _require(isinstance(raw, str) or type(raw) is int)
    return str(raw)


def _is_path(raw: object) -> bool:
    return isinstance(raw, str) and bool(raw.strip()) and "\0" not in raw


def _texts(raw: object) -> tuple[str, ...]:
    if isinstance(raw, str):
        return tuple(filter(None, (part.strip() for part in raw.split(","))))
    _require(isinstance(raw, list))
    return tuple(map(_text, cast("list[object]", raw)))


def _annotation(key: Key) -> Any:
    """Return the type of a key for pydantic, without pydantic's lenient conversions."""
    kind: Any = key.kind
    read: _Reader = _texts
    if kind is int:
        read = _whole(key)
    elif kind is float:
        read = _only(lambda raw: not isinstance(raw, bool))
    elif kind is bool:
        read = _only(lambda raw: isinstance(raw, bool | str))
    elif kind is str:
        read = _text
    elif kind is Secret:
        kind, read = InstanceOf[Secret], lambda raw: Secret(_text(raw))
    elif key.is_text:
        read = _only(_is_path)
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        read = _text
    if not key.is_optional:
        return Annotated[kind, BeforeValidator(read)]
    if key.is_text:
        return Annotated[kind | None, BeforeValidator(read)]
    return Annotated[
        kind | None, BeforeValidator(lambda raw: None if raw == _NOTHING else read(raw))
    ]


class _Strict(BaseSettings):
    model_config = SettingsConfigDict(
        extra="forbid", validate_default=False, allow_inf_nan=False, frozen=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        assert isinstance(init_settings, InitSettingsSource), init_settings
        layers = init_settings.init_kwargs["layers"]
        return tuple(_LayerSource(settings_cls, layer) for layer in layers)


_FIELDS: dict[str, Any] = {name: (_annotation(key), None) for name, key in KEYS.items()}
_MODEL = create_model("Settings", __base__=_Strict, **_FIELDS)
