"""Requests and answers read into types and written again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.metadata.ids import INT32_MAX
from rlmm.wire import hello, options, values
from rlmm.wire import operator_queries as looking
from rlmm.wire import queries as questions
from rlmm.wire import value_checks as forms
from rlmm.wire.methods import METHODS
from tests.support.builders import tp

if TYPE_CHECKING:
    from collections.abc import Callable


def _partition(value: object) -> object:
    return values.partition_value(values.read_partition(value))


def _partitions(value: object) -> object:
    return [values.partition_value(one) for one in values.read_partitions(value)]


def _epoch(value: object) -> object:
    return forms.uint31(value, "a leader epoch")


def _epoch_or_none(value: object) -> object:
    return None if value is None else _epoch(value)


def _offset(value: object) -> object:
    return forms.uint63(value, "an offset")


def _after(value: object) -> object:
    after = questions.read_page_key(value)
    return value if after is None else questions.page_key_value(after)


def _limit(value: object) -> object:
    return forms.uint31(value, "a limit")


def _lookups(value: object) -> object:
    return [questions.lookup_value(*one) for one in questions.read_lookups(value)]


def _segment(value: object) -> object:
    return values.segment_value(values.read_segment(tp(), value))


def _segment_or_none(value: object) -> object:
    return values.optional_segment_value(values.read_optional_segment(tp(), value))


def _uuid(value: object) -> object:
    return forms.uuid(value, "the id of a segment")


def _flag(value: object) -> object:
    return forms.flag(value, "complete")


def _hello(value: object) -> object:
    return hello.hello_value(hello.read_hello(value))


def _place(value: object) -> object:
    return forms.uint31(value, "a metadata partition")


def _places(value: object) -> object:
    return looking.read_places(value, INT32_MAX)


def _bytes(value: object) -> object:
    return forms.uint31(value, "a number of bytes")


_ARGS: Final[dict[str, tuple[Callable[[object], object], ...]]] = {
    "hello": (_hello,),
    "ping": (),
    "add_segment": (_partition, _segment),
    "segment": (_partition, _uuid),
    "segment_for": (_partition, _epoch, _offset),
    "segments_for": (_lookups,),
    "highest_offset": (_partition, _epoch),
    "next_segment_with_txn_index": (_partition, _epoch, _offset),
    "list_segments": (_partition, _after, _limit),
    "list_segments_by_epoch": (_partition, _epoch, _after, _limit),
    "remote_log_size": (_partition, _epoch_or_none),
    "partition_delete": (_partition,),
    "is_ready": (_partition,),
    "wait_ready": (_partition,),
    "assign": (_partitions, _partitions, _flag),
    "stop_partitions": (_partitions,),
    "read_token": (),
    "status": (),
    "list_partitions": (_place, looking.read_summary_key, _limit),
    "open_image": (_partition, _bytes),
    "read_image": (_offset, _bytes),
    "close_image": (),
    "log_bounds": (_places,),
    "read_log": (_uuid, _place, _offset, _offset, _bytes),
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
        again = [read(arg) for read, arg in zip(_ARGS[method], said, strict=True)]
    return again + [_options(known.options, one) for one in args[count:]]


def _options(kind: str | None, value: object) -> object:
    if kind == "read":
        return options.read_options_value(options.read_read_options(value))
    if kind == "write":
        return options.write_options_value(options.read_write_options(value))
    return options.wait_options_value(options.read_wait_options(value))


def _page(value: object) -> object:
    segments, after = questions.read_page(tp(), value)
    return [[values.segment_value(one) for one in segments], after]


def _written(value: object) -> object:
    return values.write_answer_value(*values.read_write_answer(value))


def _segment_answers(value: object) -> object:
    partitions = [tp()] * len(forms.array(value, "answers"))
    answers = questions.read_segment_answers(partitions, value)
    return [questions.segment_answer_value(one) for one in answers]


def _deletion(value: object) -> object:
    return values.deletion_value(values.read_deletion(tp(), value))


def _hello_answer(value: object) -> object:
    return hello.hello_answer_value(hello.read_hello_answer(value))


def _summary_page(value: object) -> object:
    return looking.summary_page_value(looking.read_summary_page(value))


def _image_head(value: object) -> object:
    return looking.image_head_value(looking.read_image_head(value))


def _log_ends(value: object) -> object:
    ends = forms.array(forms.array(value, "bounds", 2)[1], "bounds")
    return looking.log_ends_value(*looking.read_log_ends(value, len(ends)))


def _log_piece(value: object) -> object:
    return looking.log_piece_value(looking.read_log_piece(value))


def _itself(value: object) -> object:
    return value


_RESULTS: Final[dict[str, Callable[[object], object]]] = {
    "hello": _hello_answer,
    "add_segment": _written,
    "segment_for": _segment_or_none,
    "segments_for": _segment_answers,
    "list_segments": _page,
    "partition_delete": _deletion,
    "read_token": questions.read_token,
    "list_partitions": _summary_page,
    "open_image": _image_head,
    "log_bounds": _log_ends,
    "read_log": _log_piece,
}


def read_result_again(method: str, result: object) -> object:
    return _RESULTS.get(method, _itself)(result)
