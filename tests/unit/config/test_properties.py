"""Java's properties files, and the login line in them."""

from __future__ import annotations

import pytest

from rlmm.base.java_properties import parse_properties
from rlmm.config.kafka_names import parse_login
from rlmm.errors import ConfigError

FORMS = {
    "equals": ("a=b", {"a": "b"}),
    "colon": ("a:b", {"a": "b"}),
    "blank": ("a b c", {"a": "b c"}),
    "tab and form feed": ("a\t\fb", {"a": "b"}),
    "blanks around the sign": ("  a \t=\f b ", {"a": "b "}),
    "only the first sign separates": ("a==b:c", {"a": "=b:c"}),
    "sign after blanks": ("a   : =b", {"a": "=b"}),
    "no value": ("a", {"a": ""}),
    "sign and no value": ("a=", {"a": ""}),
    "no key": ("=b", {"": "b"}),
    "comments": ("#a=b\n  ! c=d\ne=f", {"e": "f"}),
    "comment sign within": ("a=b # c", {"a": "b # c"}),
    "blank lines": ("\n \t\n\na=b\n\n", {"a": "b"}),
    "all line ends": ("a=1\rb=2\r\nc=3\nd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
    "continued": ("a=b,\\\n   c,\\\r\n\td", {"a": "b,c,d"}),
    "even backslashes end the line": ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    "comment is not continued": ("#a\\\nb=c", {"b": "c"}),
    "continued by what looks like a comment": ("a=b\\\n#c", {"a": "b#c"}),
    "continued by a blank line": ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
    "backslash at the end": ("a=b\\", {"a": "b"}),
    "escaped separators in the key": ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
    "letters": ("a=\\t\\n\\r\\f\\b\\q\\\\", {"a": "\t\n\r\fbq\\"}),
    "code": ("a=\\u00e9\\u00E9", {"a": "éé"}),
    "two halves of one character": ("a=\\uD83D\\uDE00", {"a": "\U0001f600"}),
    "other blanks are letters": ("\x0b\xa0a=b", {"\x0b\xa0a": "b"}),
    "windows path": ("a=C:\\\\tmp\\\\x", {"a": "C:\\tmp\\x"}),
    "later one counts": ("a=1\na=2", {"a": "2"}),
}


@pytest.mark.parametrize(("text", "expected"), FORMS.values(), ids=FORMS)
def test_properties_when_in_any_form_then_as_java_does(text: str, expected: dict[str, str]) -> None:
    """Separators, comments, continuations and escapes have the meaning that Java gives them."""
    assert {entry.key: entry.value for entry in parse_properties(text)} == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u", "\\uxyzw=b"])
def test_escape_when_it_is_none_then_is_refused_with_its_line(text: str) -> None:
    """A `\\u` without four hexadecimal digits is the only thing that Java refuses."""
    with pytest.raises(ConfigError, match=r"^line 2: \\u must be followed"):
        parse_properties(f"first=1\n{text}")


def test_line_when_continued_then_is_the_one_where_it_begins() -> None:
    """A property is found again by the number of its first natural line."""
    found = parse_properties("# comment\na=b\\\n  c\n\nd=e")
    assert [(entry.key, entry.line) for entry in found] == [("a", 2), ("d", 5)]


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
