"""
What people are shown: plain values that JSON and MessagePack can say, made of values of the engine.

Pure. The names of fields are stable and the same wherever they are shown. Nothing is asked for
here, and no time is looked up: both are passed in.

May be imported by every package above it in the layers of `pyproject.toml`.

- `change`: What differs between two moments, as it is shown.
- `event`: Events of the metadata topic as they are shown.
- `generated_schemas`: JSON schemas generated from the types of answers.
- `explanation`: What there is to say of one offset, as it is shown.
- `readiness`: What can be asked now, as it is shown, and whether the process is alive at all.
- `segment`: Segments and user partitions as they are shown.
- `source_status`: How a source of the tiered state stands, as it is shown.
- `status`: How an engine, and the process, stand.
- `values`: Single values as they are shown.
"""
