"""
Inheritance of settings: which common settings apply to one of several clusters. Pure.

A cluster's own settings override common ones and decide its kind of log; common keys of other kinds
do not apply. A common key that applies to no cluster is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.config.keys import KEYS
from rlmm.config.process import LogKind
from rlmm.config.sections import KIND_OF_SECTION
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlmm.config.keys import Key
    from rlmm.config.layers import Layer

_KIND = "log_kind"
_COUNT = "log_num_partitions"


def of_the_process(layers: Iterable[Layer]) -> list[Layer]:
    return [_of(layer, lambda key: not key.is_of_cluster) for layer in layers]


def inherited(
    common: Iterable[Layer], own: Sequence[Layer], said: Mapping[str, object]
) -> list[Layer]:
    """
    Return the *common* settings of a cluster with the layers *own* and their typed values *said*.
    """
    kinds = _kinds(own, said)
    if not kinds:
        return list(common)

    def is_for_it(key: Key) -> bool:
        if key.name == _COUNT:
            return kinds != {LogKind.KAFKA}
        return key.name != _KIND and KIND_OF_SECTION.get(key.section) in {None, *kinds}

    return [_of(layer, is_for_it) for layer in common]


def without(layers: Iterable[Layer], names: Iterable[str]) -> list[Layer]:
    left_out = set(names)
    return [_of(layer, lambda key: key.name not in left_out) for layer in layers]


def require_used(common: Iterable[Layer], used: Iterable[Layer]) -> None:
    """Refuse a key of the *common* layers that no cluster has inherited."""
    names = {name for layer in used for name in layer.values} | {_KIND}
    for layer in common:
        for name, found in layer.values.items():
            if name not in names:
                msg = f"{found} is for none of the clusters: each follows another kind of log"
                raise ConfigError(msg)


def _kinds(own: Iterable[Layer], said: Mapping[str, object]) -> set[LogKind]:
    kind = said.get(_KIND)
    if isinstance(kind, LogKind):
        return {kind}
    sections = {KEYS[name].section for layer in own for name in layer.values}
    return {KIND_OF_SECTION[section] for section in sections if section in KIND_OF_SECTION}


def _of(layer: Layer, is_wanted: Callable[[Key], bool]) -> Layer:
    values = {name: found for name, found in layer.values.items() if is_wanted(KEYS[name])}
    return replace(layer, values=values)
