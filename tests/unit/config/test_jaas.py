"""The line that names a login module."""

from __future__ import annotations

import pytest

from rlmm.config.jaas import parse_login
from rlmm.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LINES = {
    "usual": (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
    "over lines": (f'{PLAIN} required\n  username="a"\n  password="b" ;\n', None),
    "blanks around signs": (f'{PLAIN} required username = "a" password= "b";', None),
    "single quotes": (f"{PLAIN} required username='a' password='b';", None),
    "without quotes": (f"{PLAIN} required username=a password=b;", None),
    "comments": (f'{PLAIN} required // user\n username="a" /* and */ password="b";', None),
    "flag in capitals": (f'{PLAIN} REQUIRED username="a" password="b";', None),
    "escapes": (
        f'{PLAIN} required username="a\\"b" password="\\\\ \\t\\101;=\\x";',
        {"username": 'a"b', "password": "\\ \tA;=x"},
    ),
    "nothing in quotes": (f'{PLAIN} required username="";', {"username": ""}),
    "no options": (f"{PLAIN} required;", {}),
}


@pytest.mark.parametrize(("text", "options"), LINES.values(), ids=LINES)
def test_login_when_written_for_java_then_read(text: str, options: dict[str, str] | None) -> None:
    """Module and options, however they are quoted, broken into lines and commented."""
    login = parse_login(text)
    assert login.module == "PlainLoginModule"
    assert login.options == ({"username": "a", "password": "b"} if options is None else options)


WRONG = {
    "nothing": ("", "begin with a login module"),
    "no flag": ('Module username="s3cret";', "begin with a login module and 'required'"),
    "no end": ('Module required password="s3cret"', "end with ';'"),
    "open quote": ('Module required password="s3cret;', "from character 26 on"),
    "no value": ("Module required password=;", "option 1"),
    "two signs": ('Module required a="b" password=="s3cret";', "option 2"),
    "no sign": ('Module required password "s3cret";', "option 1"),
    "two modules": ('A required password="s3cret"; B required;', "one login module only"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_login_when_malformed_then_is_refused_without_its_text(text: str, said: str) -> None:
    """The error does not show any part of a login line."""
    with pytest.raises(ConfigError, match=said) as refused:
        parse_login(text)
    assert "s3cret" not in str(refused.value)


def test_login_when_printed_then_hides_its_options() -> None:
    """A traceback that shows a login shows no password."""
    assert "s3cret" not in repr(parse_login('Module required password="s3cret";'))
