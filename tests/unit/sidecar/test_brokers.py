"""What one broker has: a value, and every change of it another one."""

from rlmm.metadata.ids import Uuid
from rlmm.sidecar.brokers import Share
from tests.support.builders import tp

ONE, TWO, THREE = (tp("orders", number) for number in range(3))
FIRST, AGAIN = (Uuid.of(0, number) for number in (1, 2))


def test_share_when_nothing_was_said_then_is_not_known_and_not_empty() -> None:
    """Nothing said and nothing given are two things."""
    assert Share().partitions is None
    assert Share().given([], complete=False).partitions == frozenset()
    assert Share().without([ONE]).partitions is None


def test_share_when_given_more_then_grows_and_when_complete_is_replaced() -> None:
    """Only what is complete takes away."""
    share = Share().given([ONE], complete=False).given([TWO], complete=False)
    assert share.partitions == frozenset({ONE, TWO})
    assert share.given([THREE], complete=True).partitions == frozenset({THREE})
    assert share.without([ONE, THREE]).partitions == frozenset({TWO})
    assert share.given([ONE, TWO], complete=False) == share


def test_share_when_the_broker_starts_again_then_is_not_known_and_what_it_had_is_held() -> None:
    """What it had is read for it until it says anew; then only that."""
    share = Share().met(FIRST).given([ONE, TWO], complete=True)
    assert share.met(FIRST) is share
    assert share.met(None) is share
    again = share.met(AGAIN)
    assert (again.partitions, again.held) == (None, frozenset({ONE, TWO}))
    assert again.met(FIRST).held == {ONE, TWO}
    assert again.without([ONE]).held == {TWO}
    anew = again.given([THREE], complete=False)
    assert (anew.partitions, anew.held) == (frozenset({THREE}), frozenset({THREE}))


def test_share_when_an_unnamed_start_is_named_later_then_that_is_the_same_only_while_unsaid() -> (
    None
):
    """Who did not name its start and now does has started again, unless it had said nothing."""
    assert Share().met(FIRST) == Share(FIRST)
    assert Share().given([ONE], complete=True).met(FIRST) == Share(FIRST, None, frozenset({ONE}))
