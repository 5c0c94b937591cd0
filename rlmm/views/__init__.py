"""
The types of answers, and how they are made of values of the engine.

Pure. Each shown thing has one type; its fields and their order are an interface. JSON schemas are
generated from the types. Callers pass the time in.

May be imported by every package above it in the layers of `pyproject.toml`.

- `change`: Differences between two moments.
- `event`: Events of the metadata topic, and lines of a history.
- `explanation`: The explanation of one offset.
- `generated_schemas`: JSON schemas generated from the types of answers.
- `readiness`: Readiness and liveness of the process.
- `segment`: Segments and user partitions.
- `source_status`: The status of a source of the tiered state.
- `status`: The status of an engine.
- `values`: Single values, and the base of every object.
"""
