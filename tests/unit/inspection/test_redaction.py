"""Names replaced in a support bundle, with the same stand-in for the same name."""

from __future__ import annotations

from rlmm.telemetry.redaction import NameRedaction

NAMES = NameRedaction(b"key", ["orders", "orders-eu", "a.b", "__remote_log_metadata"])


def test_redaction_takes_topics_hosts_paths_and_opaque_bytes_out_of_any_text() -> None:
    """Redaction removes them anywhere in a text, and leaves ids, numbers and Kafka's own topics."""
    found = NAMES.of({
        "topic": "orders-eu", "subject": "orders-3 AAAAAAAAAAAAAAAAAAAAyg", "size_bytes": 7,
        "detail": "kafka-1.example.com:9092 and 10.0.0.7:9092 hold /var/lib/kafka/orders-3/a.log",
        "custom_metadata": "c2VjcmV0", "nested": [{"topic": "__remote_log_metadata"}],
        "when": "2026-01-31T14:05:00.000Z", "local": "127.0.0.1:7407 localhost:7407",
    })  # fmt: skip
    assert isinstance(found, dict)
    text = str(found)
    for name in ("orders", "example", "10.0.0.7", "/var", "c2VjcmV0"):
        assert name not in text
    assert found["topic"].startswith("topic-")
    assert found["subject"].endswith("-3 AAAAAAAAAAAAAAAAAAAAyg")
    assert found["nested"] == [{"topic": "__remote_log_metadata"}]
    assert found["when"] == "2026-01-31T14:05:00.000Z"
    assert found["local"] == "127.0.0.1:7407 localhost:7407"
    assert (found["size_bytes"], found["custom_metadata"]) == (7, "8 characters")


def test_redaction_gives_one_name_one_stand_in_and_another_bundle_another() -> None:
    """Stand-ins differ between bundles, so trying names does not reveal one."""
    one = NAMES.of(["orders-3", {"topic": "orders"}, "of orders."])
    assert isinstance(one, list)
    standin = one[1]["topic"]
    assert one == [f"{standin}-3", {"topic": standin}, f"of {standin}."]
    other = NameRedaction(b"other", ["orders"]).of({"topic": "orders"})
    assert other != {"topic": standin}


def test_redaction_when_it_is_off_then_changes_nothing() -> None:
    """Redaction changes nothing when it is off."""
    document = {"topic": "orders", "detail": "kafka:9092"}
    assert NameRedaction(b"key", ["orders"], is_on=False).of(document) is document


def test_redaction_leaves_longer_words_that_begin_like_a_topic_alone() -> None:
    """Redaction replaces a topic's name only as a whole word."""
    assert NAMES.of("ordersX reorders orders_x") == "ordersX reorders orders_x"
