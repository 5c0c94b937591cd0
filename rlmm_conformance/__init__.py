"""
Conformance: proof that an implementation answers as Kafka's metadata manager does, or differs only
where a named rule says so.

Scenarios, golden records and partitioner vectors are data; any implementation can be put behind an
`Engine`. A step that differs from Kafka counts as documented only when a literal model of Kafka,
with the named rule as a switch, proves it.

- `answers`: Answers as JSON values.
- `child`: A child process that answers in lines, each with a deadline.
- `command`: `rlmm conformance`, and the engines by name.
- `corpus`: Scenario files.
- `data`: The corpus as JSON for any language.
- `engine`: The interface of an implementation under test.
- `event_forms`: Events as JSON and back.
- `exec_engine`: An implementation in another process, asked by JSON lines.
- `fields`: The strict types of the corpus's JSON values.
- `model`: A literal model of Kafka's cache and store of segment metadata.
- `model_engine`: The literal model behind the engine's interface.
- `python_engine`: The real engine of this package behind the engine's interface.
- `record_vectors`: The golden records, decoder vectors and partitioner vectors of the package.
- `report`: The outcome of a run, and its output.
- `rules`: The named rules.
- `runner`: The run of a corpus against an engine, and the proof of each documented difference.
- `serve`: An engine of this process offered to another one.
- `steps`: The operations of a scenario as typed values.

Nothing imports it.
"""
