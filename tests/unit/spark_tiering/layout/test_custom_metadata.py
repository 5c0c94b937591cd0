"""Custom metadata: the plugin's vectors, its unknown tags, and a broker's limit."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import (
    CustomMetadata,
    format_custom_metadata,
    parse_custom_metadata,
)
from spark_tiering.layout.findings import LayoutFault
from tests.support.stores.findings import assert_finding

VECTORS = {
    "size and key": (CustomMetadata(100, main_key="foo"), "02 00 02 c801 02 04 04666f6f"),
    "all": (CustomMetadata(100, "pfx/", "foo"), "03 0002c801 0105057066782f 020404666f6f"),
    "size alone": (CustomMetadata(0), "01 00 01 00"),
    "empty prefix": (CustomMetadata(prefix=""), "01 01 01 01"),
    "largest size": (CustomMetadata(2**63 - 1), "01 00 0a feffffffffffffffff01"),
    "another's": (CustomMetadata(1, others={9: b"xyz"}), "02 000102 090378797a"),
}


@pytest.mark.parametrize(("custom", "section"), VECTORS.values(), ids=VECTORS)
def test_custom_metadata_when_written_is_the_plugins(custom: CustomMetadata, section: str) -> None:
    """Fields are written by rising tag as by the plugin, and unknown fields survive."""
    assert format_custom_metadata(custom) == bytes.fromhex(section)
    assert parse_custom_metadata(bytes.fromhex(section)) == custom


@pytest.mark.parametrize("section", [None, b""], ids=["absent", "empty"])
def test_custom_metadata_that_is_absent_has_no_fields(section: bytes | None) -> None:
    """Absent custom metadata, the plugin's default, has no fields."""
    assert parse_custom_metadata(section) == CustomMetadata()
    assert format_custom_metadata(CustomMetadata()) is None


def test_custom_metadata_beyond_the_limit_of_brokers_is_refused() -> None:
    """Metadata above the brokers' limit is refused: a broker would stop copying the partition."""
    custom = CustomMetadata(1, "", "k" * 116)
    assert len(format_custom_metadata(custom) or b"") == 126
    with pytest.raises(InvalidArgument, match="129 bytes, the broker takes 128"):
        format_custom_metadata(CustomMetadata(1, "pfx", "k" * 116))
    assert format_custom_metadata(CustomMetadata(1, "pfx", "k" * 116), 129) is not None


@pytest.mark.parametrize(
    "custom",
    [
        CustomMetadata(-1),
        CustomMetadata(2**63),
        CustomMetadata(others={0: b""}),
        CustomMetadata(others={2: b""}),
        CustomMetadata(others={2**31: b""}),
    ],
)
def test_custom_metadata_that_means_nothing_when_written_is_refused(custom: CustomMetadata) -> None:
    """Custom metadata with a negative size, or an unknown field under a known tag, is refused."""
    with pytest.raises(InvalidArgument):
        format_custom_metadata(custom)


@pytest.mark.parametrize(
    "section",
    [
        pytest.param("02 00 02 c801", id="a field too few"),
        pytest.param("01 00 02 c801 00", id="bytes behind the end"),
        pytest.param("02 020404666f6f 0002c801", id="tags that fall"),
        pytest.param("02 0002c801 0002c801", id="a tag twice"),
        pytest.param("01 00 03 c801", id="a length beyond the end"),
        pytest.param("01 00 03 c80100", id="a number shorter than its field"),
        pytest.param("01 00 01 c8", id="a number longer than its field"),
        pytest.param("01 00 0b 8080808080808080808001", id="a number of eleven bytes"),
        pytest.param("01 00 0a ffffffffffffffffff7f", id="a number above 64 bits"),
        pytest.param("01 02 01 00", id="a null text"),
        pytest.param("01 02 03 04666f", id="a text cut off"),
        pytest.param("01 02 03 02666f", id="a text shorter than its field"),
        pytest.param("01 02 02 02ff", id="no UTF-8"),
        pytest.param("ffffffff0f", id="a count that lies"),
        pytest.param("ffffffffff01", id="a count of six bytes"),
        pytest.param("01 ffffffff0f 00", id="a tag above int"),
        pytest.param("7b2261223a317d", id="another plugin's"),
    ],
)
def test_custom_metadata_of_somebody_else_when_parsed_is_a_finding(section: str) -> None:
    """Another plugin's custom metadata is a finding."""
    assert_finding(parse_custom_metadata(bytes.fromhex(section)), LayoutFault.DAMAGED)
