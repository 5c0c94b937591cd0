"""The record file and the JSON form of events: accepted values and refusals."""

from __future__ import annotations

import pytest

from rlmm.errors import ConfigError, EngineFailed, InvalidArgument
from rlmm_conformance.event_forms import event_form, event_of
from rlmm_conformance.fields import FieldError, Json
from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.record_vectors import GoldenRecord, load_record_vectors, parse_record_vectors
from rlmm_conformance.runner import partitioner_checks, record_checks

VECTORS = load_record_vectors()
UPDATE = next(golden.event for golden in VECTORS.golden if golden.name == "update_finish")
EMPTY: dict[str, Json] = {
    "format": 1, "golden": [], "tolerance": [], "unpublishable": [], "partitioner": [],
}  # fmt: skip
TOLERANCE: Json = {"name": "x", "note": "", "value": None}
UNPUBLISHABLE: Json = {"name": "x", "why": "y", "event": 1}


@pytest.mark.parametrize("golden", VECTORS.golden, ids=lambda golden: str(golden.name))
def test_event_when_read_from_json_and_written_again_is_the_same(golden: GoldenRecord) -> None:
    """Every golden event survives the way through the classes of events."""
    assert event_form(event_of(golden.event)) == golden.event


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"kind": "song"}, FieldError),
        ({"kind": None}, FieldError),
        ({"state": "GONE"}, FieldError),
        ({"broker": "1"}, FieldError),
        ({"broker": True}, FieldError),
        ({"topic": None}, FieldError),
        ({"topic_id": "0"}, FieldError),
        ({"colour": "red"}, FieldError),
        ({"broker": 2**31}, InvalidArgument),
        ({"event_ts": -(2**63) - 1}, InvalidArgument),
        ({"segment_id": "00"}, InvalidArgument),
    ],
    ids=repr,
)
def test_event_when_not_of_the_form_or_impossible_is_refused(
    change: dict[str, Json], error: type[Exception]
) -> None:
    """An event has exactly its keys with their types; a value beyond its field is an argument."""
    with pytest.raises(error):
        event_of(UPDATE | change)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "Expected `object`, got `array`"),
        (EMPTY | {"format": 2}, "Invalid enum value 2 - at `$.format`"),
        (EMPTY | {"colour": []}, "unknown field `colour`"),
        (EMPTY | {"golden": {}}, "Expected `array`, got `object` - at `$.golden`"),
        (EMPTY | {"golden": [{"name": "x"}]}, "missing required field `from` - at `$.golden[0]`"),
        (EMPTY | {"tolerance": [{"name": "x", "event": {}}]}, "at `$.tolerance[0]`"),
        (EMPTY | {"tolerance": [TOLERANCE]}, "needs one of 'event' and 'undecodable' - at `$.tol"),
        (EMPTY | {"unpublishable": [UNPUBLISHABLE]}, "at `$.unpublishable[0].event`"),
        (EMPTY | {"partitioner": [{"topic_id": "0"}]}, "at `$.partitioner[0]"),
    ],
)
def test_record_file_when_not_of_the_form_is_refused(content: Json, says: str) -> None:
    """One line names the file, and the path of the value in it."""
    with pytest.raises(ConfigError, match=r"^f: ") as caught:
        parse_record_vectors("f", content)
    assert says in str(caught.value)


def test_checks_when_listed_ask_for_every_vector() -> None:
    """Golden records are asked three ways, every other vector once."""
    engine = PythonEngine()
    names = [name for name, *_ in record_checks(engine, VECTORS)]
    golden = [name for name in names if name.startswith("golden/")]
    assert len(golden) == 3 * len(VECTORS.golden)
    assert len(names) == len(golden) + len(VECTORS.tolerance) + len(VECTORS.unpublishable)
    assert len(list(partitioner_checks(engine, VECTORS))) == len(VECTORS.partitioner)


def test_model_when_asked_for_records_gives_up() -> None:
    """The model answers no question about bytes or partitioning."""
    model = ModelEngine()
    with pytest.raises(EngineFailed):
        model.decode(b"")
    with pytest.raises(EngineFailed):
        model.encode({}, publish=True)
    with pytest.raises(EngineFailed):
        model.partition_for(b"", 0, 1)
