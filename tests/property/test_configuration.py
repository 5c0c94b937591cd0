"""Configurations of any content: each value is taken, or refused by its key."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from rlmm.base.java_properties import parse_properties
from rlmm.config.kafka_names import KafkaSetting, parse_login
from rlmm.config.key_table import KEYS
from rlmm.config.layers import Layer
from rlmm.config.loading import LoadedConfiguration, load
from rlmm.config.merging import merged
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from random import Random

_LETTERS = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}
_SIGNS = "=: \t\f#!\\"


def written(properties: dict[str, str], random: Random) -> str:
    lines = []
    for key, value in properties.items():
        if random.random() < 0.3:
            lines.append(random.choice(["", "  ", "# a = b\\", "\t!c"]))
        left, right = _escaped(key, random), _escaped(value, random)
        separator = random.choice(["=", ":", " = ", "\t:\f"])
        lines.append(f"{random.choice(['', ' '])}{left}{separator}{right}")
    return "".join(line + random.choice(["\n", "\r", "\r\n"]) for line in lines)


def _escaped(text: str, random: Random) -> str:
    parts = []
    for character in text:
        if character in _LETTERS and random.random() < 0.5:
            parts.append(f"\\{_LETTERS[character]}")
        elif character in _SIGNS:
            parts.append(f"\\{character}")
        elif not " " < character < "\x7f" or (character != "u" and random.random() < 0.1):
            units = character.encode("utf-16-be", "surrogatepass")
            parts += [f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)]
        else:
            parts.append(character)
        if random.random() < 0.1:
            parts.append("\\" + random.choice(["\n", "\r\n", "\n  ", "\r\t"]))
    return "".join(parts)


LATIN = st.characters(max_codepoint=255)
ANY_TEXT = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["0", "-1", "1", "inf", "nan", "true", "none", "all", "1e9", "5s", "1GiB"]),
    st.integers().map(str),
)
SERVERS = {"kafka_bootstrap_servers": "one:9092"}


@given(st.dictionaries(st.text(), st.text(), max_size=8), st.randoms(use_true_random=False))
def test_properties_in_any_form_are_read_back(properties: dict[str, str], random: Any) -> None:
    """Properties are read back however keys and values are escaped, broken and separated."""
    text = written(properties, random)
    assert {entry.key: entry.value for entry in parse_properties(text)} == properties


@given(st.text(LATIN | st.sampled_from("\\\n=: u0")))
def test_properties_when_they_are_anything_then_are_read_or_refused(text: str) -> None:
    """Any text is read as properties or refused with our error, with lines counted from one."""
    with suppress(ConfigError):
        assert all(1 <= entry.line <= text.count("\n") + text.count("\r") + 1
                   for entry in parse_properties(text))  # fmt: skip


@given(st.text(st.sampled_from("ab\"'\\;= \n/*.")))
def test_login_when_it_is_anything_then_is_read_or_refused(text: str) -> None:
    """Any line is read as a login or refused with our error."""
    with suppress(ConfigError):
        assert parse_login(text).module


def outcome(flags: dict[str, str], environ: dict[str, str]) -> LoadedConfiguration | str:
    try:
        return load(flags, environ)
    except ConfigError as error:
        return str(error)


@given(st.sampled_from(sorted(KEYS)), ANY_TEXT, st.booleans())
def test_f97_value_of_any_kind_is_taken_or_refused(name: str, text: str, is_flag: bool) -> None:
    """Any value gives a configuration, or one line with the key and its source (F97)."""
    key = KEYS[name]
    others = SERVERS if key.section.startswith("kafka") and name not in SERVERS else {}
    flags = {**others, **({name: text} if is_flag else {})}
    found = outcome(flags, {} if is_flag else {key.env: text})
    if isinstance(found, str):
        assert len(found.splitlines()) == 1
        asked = f"{key.flag} (flag)" if is_flag else f"{key.env} (environment)"
        assert asked in found or key.kind.__name__ == "Path"
        return
    (setting,) = [setting for setting in found.settings if setting.key is key]
    assert setting.source == ("flag" if is_flag else "environment")


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), ANY_TEXT, max_size=4))
def test_f97_values_when_several_are_given_then_taken_or_refused(flags: dict[str, str]) -> None:
    """Failure scenario F97: the reader refuses a contradiction in one line that names a key."""
    found = outcome({**SERVERS, **flags}, {})
    if isinstance(found, str):
        assert len(found.splitlines()) == 1


RAW = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(sorted(KEYS)), RAW)
def test_f97_value_of_a_file_has_its_type_or_is_refused(name: str, raw: object) -> None:
    """Failure scenario F97: any TOML value becomes a value of the key's type or a refusal."""
    key = KEYS[name]
    layer = Layer({name: KafkaSetting(raw, key.path, "rlmm.toml")})
    message = ""
    values: dict[str, Any] = {}
    try:
        values, _ = merged([layer])
    except ConfigError as error:
        message = str(error)
    if not values:
        assert message.startswith(f"{key.path} (rlmm.toml) must be ")
        return
    if values[name] is None:
        assert key.is_optional
    elif isinstance(key.kind, type):
        assert isinstance(values[name], key.kind)
        assert key.kind is not int or type(values[name]) is int
