"""Writes the tables and the byte example of `docs/wire-protocol.md` from the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.wire import hello, values
from rlmm.wire.errors import classes, fields_of
from rlmm.wire.framing import HEAD_BYTES
from rlmm.wire.messages import answer_frame, request_frame
from rlmm.wire.methods import METHODS
from tools.documents import first_paragraph, table, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.errors import RlmmError
    from rlmm.wire.methods import Method

_BYTES_A_LINE: Final = 24
_EXAMPLE: Final = TopicIdPartition(Uuid(bytes(15) + b"\xca"), "orders", 3)


def methods_reference() -> str:
    heads = ("method", "arguments", "result", "least role", "may be repeated", "what it does")
    return table(heads, map(_method_row, METHODS.values()))


def _method_row(method: Method) -> tuple[str, ...]:
    args = [_argument(arg) for arg in method.args]
    if method.options is not None:
        args.append(f"options of a {method.options}")
    return (
        f"`{method.name}`", "<br>".join(args) or "none", method.result, method.role,
        yes_or_no(method.is_safe_to_repeat), method.meaning,
    )  # fmt: skip


def _argument(arg: str) -> str:
    """Name and form; the form alone where it says the same."""
    name, _, form = arg.partition(": ")
    return f"*{form}*" if name == form else f"{name}: *{form}*"


def errors_reference() -> str:
    return table(("code", "is a", "retriable", "fields", "meaning"), map(_error_row, classes()))


def _error_row(cls: type[RlmmError]) -> tuple[str, ...]:
    fields = ", ".join(f"`{name}`" for name in fields_of(cls))
    base = cls.__mro__[1]
    parent = f"`{base.code}`" if hasattr(base, "code") else ""
    return f"`{cls.code}`", parent, yes_or_no(cls.retriable), fields, first_paragraph(cls)


def example() -> str:
    """Return a short conversation, each frame in hexadecimal."""
    partition = values.partition_value(_EXAMPLE)
    segment_id = SegmentId(_EXAMPLE, Uuid(bytes(15) + b"\x01"))
    segment = SegmentMetadata(
        segment_id, 0, 99, 1, 1_700_000_000_000, 1_700_000_000_001, ((0, 0),), 1_024, None,
        SegmentState.COPY_SEGMENT_FINISHED,
    )  # fmt: skip
    limits = hello.ServiceLimits(4_194_304, 128, 1_024, 10_000, 1_000, 600_000)
    answer = hello.HelloAnswer(1, "rlmm/1.0.0", None, None, None, "admin", "serve", limits)
    simple, optional = [partition, 0, 50], [partition, 0, 150, {"at_least": {17: 5}}]
    frames = (
        ("client", "hello", request_frame(0, "hello", [{"versions": [1], "client": "mine/1"}])),
        ("server", "the answer", answer_frame(0, hello.hello_answer_value(answer))),
        ("client", "segment_for, epoch 0, offset 50", request_frame(1, "segment_for", simple)),
        ("server", "a finished segment", answer_frame(1, values.segment_value(segment))),
        ("client", "the same with options", request_frame(2, "segment_for", optional)),
        ("server", "nil: no finished segment holds it", answer_frame(2, None)),
    )
    return "\n```text\n" + "\n".join(_frame_lines(frames)) + "\n```\n\n"


def _frame_lines(frames: Iterable[tuple[str, str, bytes]]) -> Iterable[str]:
    for who, what, data in frames:
        yield f"{who}: {what}"
        yield f"  {data[:HEAD_BYTES].hex(' ')}    length {len(data) - HEAD_BYTES}"
        payload = data[HEAD_BYTES:]
        for at in range(0, len(payload), _BYTES_A_LINE):
            yield f"  {payload[at : at + _BYTES_A_LINE].hex(' ')}"
