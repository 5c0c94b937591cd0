"""How the text of a parameter is read."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from rlmm.http.parameters import EPOCH, FRESHNESS, OFFSET, read_offsets, read_parameters


@pytest.mark.parametrize(
    ("text", "offsets"),
    [("0:5", {0: 5}), ("7:0,3:12", {7: 0, 3: 12}), ("1:-1", {1: -1}), (" 0:5 , 1:6", {0: 5, 1: 6})],
)
def test_token_when_well_formed_then_it_is_offsets(text: str, offsets: dict[int, int]) -> None:
    """A well-formed read token is a map of offsets by metadata partition."""
    assert read_offsets("at_least", text) == offsets


@pytest.mark.parametrize("text", ["", "5", "0:", ":5", "0:5,0:6", "0:-2", "a:1", "0:1,", "0:1e3"])
def test_token_when_it_means_nothing_then_it_is_refused(text: str) -> None:
    """A wrong token is refused as a whole."""
    with pytest.raises(InvalidArgument, match="at_least"):
        read_offsets("at_least", text)


def test_parameters_when_said_twice_then_they_are_refused() -> None:
    """A parameter that is given twice is refused."""
    with pytest.raises(InvalidArgument, match="epoch is said twice"):
        read_parameters((EPOCH,), [("epoch", "1"), ("epoch", "1")])


def test_parameters_when_read_then_only_what_is_said_is_there() -> None:
    """A parameter that may be left out has no value then."""
    said = [("epoch", "007"), ("offset", "1")]
    with pytest.raises(InvalidArgument, match="epoch"):
        read_parameters((EPOCH, OFFSET, *FRESHNESS), said)
    said = [("epoch", "7"), ("offset", str(2**63 - 1)), ("linearizable", "")]
    assert read_parameters((EPOCH, OFFSET, *FRESHNESS), said) == {
        "epoch": 7,
        "offset": 2**63 - 1,
        "linearizable": True,
    }
