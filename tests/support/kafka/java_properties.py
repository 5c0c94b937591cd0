"""Writes properties files in every form that Java reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
