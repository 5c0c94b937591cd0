"""
Kafka's record batches, format v2, as a fetch returns them and as a `.log` file holds them.

`record_set` is the unit that logs hand over, `batch` walks it batch by batch, `records` and
`compression` open a batch, `control` names transaction markers, `writer` makes batches, `damage`
says what could not be trusted. Pure, and nothing here knows what a record means.

No length found in the bytes is believed: whatever the input, the outcome is records, a value that
says what is damaged, or a clean end. Memory is bounded by the input, by `INFLATED_BYTES_MAX` and by
small factors of the two.

May be imported by every package above it in the layers of `pyproject.toml`.

- `header`: The header of a record batch, and the judgement of bytes that are no whole and sound
  batch.
- `native_walk`: The walk by the native core, batch by batch or in runs.
- `singles`: Runs of batches that hold one event each, read in one go.
"""
