"""Single option values of a reader, from texts. Pure; raises `ConfigError` without secrets."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from rlmm.errors import ConfigError
from rlmm.metadata.ids import INT32_MAX, INT64_MAX
from spark_tiering.data_source.bounds import PartitionName
from spark_tiering.layout.strict_json import Count32, Int64, JsonFault, typed_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_SECRET = re.compile(
    r"secret|passw|credential|access\.?_?key|api\.?_?key|private|token|jaas|\bsas\b|auth"
)
_SIZES = {"": 1, "b": 1, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30,
          "gb": 30, "gib": 30}  # fmt: skip
_TIMES_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_AMOUNT = re.compile(r"(\d{1,18})\s*([a-z]*)")
_TEXT_CHARACTERS_MAX = 200
_Digits = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]+\Z")]
_T = TypeVar("_T")


class ReaderOptions:
    """The options that were given, taken one by one; `require_empty` is asked at the end."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str]) -> None:
        """*known* are the names of all options there are, as documents write them."""
        self._known = {name.lower(): name for name in known}
        self._left = {name.lower(): str(value) for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._left

    def text(self, name: str, default: str = "") -> str:
        return self._left.pop(name.lower(), default).strip()

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name).lower()
        if not text:
            return default
        if text not in ("true", "false"):
            msg = f"{name} is true or false, got {text[:_TEXT_CHARACTERS_MAX]!r}"
            raise ConfigError(msg)
        return text == "true"

    def choice(self, name: str, *choices: str) -> str:
        text = self.text(name, choices[0]).lower()
        if text not in choices:
            msg = f"{name} is one of {', '.join(choices)}, got {text[:_TEXT_CHARACTERS_MAX]!r}"
            raise ConfigError(msg)
        return text

    def count(self, name: str, default: int | None = None) -> int | None:
        return self._amount(name, {"": 1}, default, least=1)

    def whole(self, name: str) -> int | None:
        return self._amount(name, {"": 1}, None, least=0)

    def size(self, name: str, default: int) -> int:
        """Return bytes, `4194304` or `4m`; units count in 1024s, as in Spark."""
        units = {unit: 1 << power if power > 1 else 1 for unit, power in _SIZES.items()}
        return self._amount(name, units, default, least=1) or default

    def duration_ms(self, name: str, default: int) -> int:
        """Return a time as Spark writes it, `15m`; without a unit it is in milliseconds."""
        found = self._amount(name, {"": 1, **_TIMES_MS}, default, least=0)
        return default if found is None else found

    def words(self, name: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in self.text(name).split(","))
        return tuple(dict.fromkeys(word for word in words if word))

    def offsets(self, name: str) -> dict[PartitionName, int]:
        """Return `{"topic": {"0": 23}}` by partition."""
        example = '{"topic": {"0": 23, "1": -1}}'
        found = _typed(name, self.text(name), dict[str, dict[_Digits, Int64]], example)
        offsets = {
            PartitionName(topic, int(number)): offset
            for topic, by_number in found.items()
            for number, offset in by_number.items()
        }
        if any(partition > INT32_MAX for _, partition in offsets):
            raise ConfigError(_ill_formed(name, example))
        return offsets

    def partitions(self, name: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
        example = '{"topic": [0, 1]}'
        found = _typed(name, self.text(name), dict[str, list[Count32]], example)
        if not found or not all(found.values()):
            raise ConfigError(_ill_formed(name, example))
        return tuple(sorted((topic, tuple(sorted(set(one)))) for topic, one in found.items()))

    def texts(self, name: str) -> dict[str, str]:
        if name not in self:
            return {}
        return _typed(name, self.text(name), dict[str, str], '{"topic": "id"}')

    def require_empty(self, refusals: Mapping[str, str]) -> None:
        """Raise `ConfigError` for a left option: why *refusals* refuse it, or a near name."""
        for name in self._left:
            for beginning, why in refusals.items():
                if name.startswith(beginning.lower()):
                    msg = f"the option {name} is not taken: {why}"
                    raise ConfigError(msg)
            if _SECRET.search(name):
                msg = (
                    f"the option {name} looks like a secret: no option takes one, for options "
                    "stand in plans and logs of Spark; each worker finds credentials where boto3 "
                    "looks for them (see docs/data-source.md)"
                )
                raise ConfigError(msg)
            msg = f"there is no option {name}{_likely(name, self._known)}"
            raise ConfigError(msg)

    def _amount(
        self, name: str, units: Mapping[str, int], default: int | None, *, least: int
    ) -> int | None:
        text = self.text(name).lower()
        if not text:
            return default
        found = _AMOUNT.fullmatch(text)
        unit = None if found is None else units.get(found[2])
        amount = None if found is None or unit is None else int(found[1]) * unit
        if amount is None or not least <= amount <= INT64_MAX:
            msg = f"{name} is a whole number from {least}, got {text[:_TEXT_CHARACTERS_MAX]!r}"
            raise ConfigError(msg)
        return amount


def _typed(name: str, text: str, of: type[_T], example: str) -> _T:
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        msg = f"{name} is no JSON: {str(error)[:_TEXT_CHARACTERS_MAX]}"
        raise ConfigError(msg) from error
    if not isinstance(found, dict):
        msg = f"{name} is a JSON object, got {text[:_TEXT_CHARACTERS_MAX]!r}"
        raise ConfigError(msg)
    try:
        return typed_value(found, of)
    except JsonFault as fault:
        raise ConfigError(_ill_formed(name, example)) from fault


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "a name stands there twice"
        raise ValueError(msg)
    return found


def _ill_formed(name: str, example: str) -> str:
    return f"{name} has another form than {example}"


def _likely(name: str, known: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; {known[near[0]]} is one" if near else ", see docs/data-source.md"


def exactly_one(options: ReaderOptions, names: Collection[str]) -> str:
    given = [name for name in names if name in options]
    if len(given) != 1:
        told = " and ".join(given) if given else "none"
        msg = f"exactly one of {', '.join(names)} has to be given, got {told}"
        raise ConfigError(msg)
    return given[0]
