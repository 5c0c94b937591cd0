"""Kinds of options: each returns what `click.option` returns, without what all of them say."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from rlmm.cli.common.parameter_types import POSITIVE_TIME, TIME
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from click import Context

    Option = Callable[[Any], Any]

EVERY_USER: Final = "secrets are no flags, which every user of the machine can read"
_SECRET: Final = re.compile(r"password$|jaas\.config$|ssl\.keystore\.key$", re.IGNORECASE)


class CalledAsFlag(click.Option):
    """A flag whose variable has the flag's name, which click would take from the parameter."""

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        if ctx.auto_envvar_prefix is None:
            return None
        flag = max(self.opts, key=len).removeprefix("--").replace("-", "_").upper()
        return os.environ.get(f"{ctx.auto_envvar_prefix}_{flag}") or None


class ExplicitFlag(CalledAsFlag):
    """A flag that only counts on the command line: a leftover variable must not delete."""

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        del ctx
        return None


def no_secret_properties(
    context: Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse a property `KEY=VALUE` of a Java client that is a secret, on the command line."""
    assert parameter.name is not None
    if context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
        for key in (assignment.partition("=")[0].strip() for assignment in given):
            if _SECRET.search(key):
                msg = (
                    f"--command-property {key}: {EVERY_USER}; put {key} into a file that "
                    "--command-config names"
                )
                raise ConfigError(msg)
    return given


def attach(options: Sequence[Any]) -> Option:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def with_options(options: Sequence[Any], build: Callable[[dict[str, Any]], object]) -> Option:
    """Return a decorator that adds *options*; the command gets what *build* makes of them first."""

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            return function(build({name: given.pop(name) for name in names}), **given)

        own = {one.name for one in getattr(function, "__click_params__", ())}
        command = attach(options)(called)
        names = [one.name for one in command.__click_params__ if one.name not in own]
        return command

    return decorate


def switch(flag: str, text: str, name: str | None = None, **attributes: Any) -> Option:
    names = (flag,) if name is None else (flag, name)
    return click.option(*names, is_flag=True, help=text, **attributes)


def text_option(flag: str, metavar: str | None, text: str) -> Option:
    return click.option(flag, default="", metavar=metavar, help=text)


def file_option(flag: str, text: str) -> Option:
    """Return a flag of a file, as a text that is empty by default."""
    kind = click.Path(dir_okay=False, path_type=str)
    return click.option(flag, type=kind, default="", help=text)


def rate_option(flag: str, text: str) -> Option:
    return click.option(flag, type=click.FloatRange(0, min_open=True), help=text)


def time_option(
    flag: str, name: str, default: str | None, text: str, *, is_positive: bool = False
) -> Option:
    """Return a flag of a duration, in milliseconds; a default is shown."""
    kind = POSITIVE_TIME if is_positive else TIME
    return click.option(
        flag, name, type=kind, default=default, show_default=True, metavar="TIME", help=text
    )


def count_option(flag: str, name: str, default: int | None, text: str) -> Option:
    kind = click.IntRange(min=0)
    return click.option(
        flag, name, type=kind, default=default, show_default=True, metavar="COUNT", help=text
    )
