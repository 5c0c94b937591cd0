"""Other versions of Kafka are the same pom with another number, and digests of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kafka.tiered import SEGMENT_BYTES
from tests.kafka.versions import OTHERS, POM, USUAL, listing_of, pom_of, tiered_topic

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("version", OTHERS)
def test_version_when_another_differs_in_its_jars_alone(tmp_path: Path, version: str) -> None:
    """The POM differs in the version alone, and the digests are those of that broker's jars."""
    written = pom_of(version, tmp_path).read_text()
    assert written != POM.read_text()
    assert written.replace(version, USUAL) == POM.read_text()
    names = [line.split()[1] for line in listing_of(version).read_text().splitlines()]
    assert [jar for jar in names if jar.startswith("kafka_2.13-")] == [f"kafka_2.13-{version}.jar"]


@pytest.mark.parametrize("version", [*OTHERS, USUAL])
def test_topic_when_of_any_version_has_small_segments(version: str) -> None:
    """A topic of any version gets small segments by the one setting of that version."""
    sizes = {name: text for name, text in tiered_topic(version).items() if "segment.bytes" in name}
    assert list(sizes.values()) == [str(SEGMENT_BYTES)]
    is_old = version in {"3.9.2", "4.0.2"}
    assert list(sizes) == ["segment.bytes" if is_old else "internal.segment.bytes"]
