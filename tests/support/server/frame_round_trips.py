"""Requests and answers read into types and written again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rlmm.metadata.ids import INT32_MAX
from rlmm.wire import hello, operator_queries, options, queries, value_checks, values
from rlmm.wire.methods import METHODS
from tests.support.builders import tp

if TYPE_CHECKING:
    from collections.abc import Callable

    Again = Callable[[Any], object]


def _after(value: object) -> object:
    after = queries.read_page_key(value)
    return value if after is None else queries.page_key_value(after)


_READS: Final[dict[str, Again]] = {
    "partition": lambda value: values.partition_value(values.read_partition(value)),
    "partitions": lambda value: [
        values.partition_value(one) for one in values.read_partitions(value)
    ],
    "lookups": lambda value: [queries.lookup_value(*one) for one in queries.read_lookups(value)],
    "segment": lambda value: values.segment_value(values.read_segment(tp(), value)),
    "uuid": lambda value: value_checks.uuid(value, "an id"),
    "uint31": lambda value: value_checks.uint31(value, "a number"),
    "uint31?": lambda value: None if value is None else value_checks.uint31(value, "a number"),
    "uint63": lambda value: value_checks.uint63(value, "a number"),
    "flag": lambda value: value_checks.flag(value, "complete"),
    "after": _after,
    "hello": lambda value: hello.hello_value(hello.read_hello(value)),
    "summary key": operator_queries.read_summary_key,
    "places": lambda value: operator_queries.read_places(value, INT32_MAX),
}
_ARGS: Final[dict[str, tuple[str, ...]]] = {
    "hello": ("hello",),
    "ping": (),
    "add_segment": ("partition", "segment"),
    "segment": ("partition", "uuid"),
    "segment_for": ("partition", "uint31", "uint63"),
    "segments_for": ("lookups",),
    "highest_offset": ("partition", "uint31"),
    "next_segment_with_txn_index": ("partition", "uint31", "uint63"),
    "list_segments": ("partition", "after", "uint31"),
    "list_segments_by_epoch": ("partition", "uint31", "after", "uint31"),
    "remote_log_size": ("partition", "uint31?"),
    "partition_delete": ("partition",),
    "is_ready": ("partition",),
    "wait_ready": ("partition",),
    "assign": ("partitions", "partitions", "flag"),
    "stop_partitions": ("partitions",),
    "read_token": (),
    "status": (),
    "list_partitions": ("uint31", "summary key", "uint31"),
    "open_image": ("partition", "uint31"),
    "read_image": ("uint63", "uint31"),
    "close_image": (),
    "log_bounds": ("places",),
    "read_log": ("uuid", "uint31", "uint63", "uint63", "uint31"),
}


def read_again(method: str, args: list[object]) -> list[object]:
    known = METHODS[method]
    known.require_count(args)
    count = len(known.args)
    said = args[:count]
    if method == "update_segment":
        again = values.update_value(values.read_update(said))
    elif method == "put_partition_delete":
        again = values.delete_value(values.read_delete(said))
    else:
        again = [_READS[kind](arg) for kind, arg in zip(_ARGS[method], said, strict=True)]
    return again + [_options(known.options, one) for one in args[count:]]


def _options(kind: str | None, value: object) -> object:
    if kind == "read":
        return options.read_options_value(options.read_read_options(value))
    if kind == "write":
        return options.write_options_value(options.read_write_options(value))
    return options.wait_options_value(options.read_wait_options(value))


def _page(value: object) -> object:
    segments, after = queries.read_page(tp(), value)
    return [[values.segment_value(one) for one in segments], after]


def _segment_answers(value: object) -> object:
    partitions = [tp()] * len(value_checks.array(value, "answers"))
    answers = queries.read_segment_answers(partitions, value)
    return [queries.segment_answer_value(one) for one in answers]


def _log_ends(value: object) -> object:
    ends = value_checks.array(value_checks.array(value, "bounds", 2)[1], "bounds")
    return operator_queries.log_ends_value(*operator_queries.read_log_ends(value, len(ends)))


_RESULTS: Final[dict[str, Again]] = {
    "hello": lambda value: hello.hello_answer_value(hello.read_hello_answer(value)),
    "add_segment": lambda value: values.write_answer_value(*values.read_write_answer(value)),
    "segment_for": lambda value: values.optional_segment_value(
        values.read_optional_segment(tp(), value)
    ),
    "segments_for": _segment_answers,
    "list_segments": _page,
    "partition_delete": lambda value: values.deletion_value(values.read_deletion(tp(), value)),
    "read_token": queries.read_token,
    "list_partitions": lambda value: operator_queries.summary_page_value(
        operator_queries.read_summary_page(value)
    ),
    "open_image": lambda value: operator_queries.image_head_value(
        operator_queries.read_image_head(value)
    ),
    "log_bounds": _log_ends,
    "read_log": lambda value: operator_queries.log_piece_value(
        operator_queries.read_log_piece(value)
    ),
}


def read_result_again(method: str, result: object) -> object:
    read = _RESULTS.get(method)
    return result if read is None else read(result)
