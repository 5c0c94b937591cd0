"""
The common part of all commands: flags, variables, exit codes, and how a query is run and printed.

May be imported by every package above it in the layers of `pyproject.toml`.

- `answer_header`: The head of an answer: its source, and the moment that it describes.
- `commands`: The subcommands of `rlmm`.
- `config_options`: `rlmm config`.
- `exit_codes`: The exit codes of commands, and the line that a person reads of an error that ends
  one.
- `item_streams`: Streams of items that are cut short.
- `log_range`: The range of the log that a command reads, from its flags.
- `object_places`: The keys of a segment's objects, in the layout of the storage plugin.
- `option_kinds`: Kinds of options: switches, files, times, counts.
- `output`: The printing of answers in one piece.
- `parameter_types`: Types of command line parameters.
- `partial_metadata`: Answers from partial metadata: assigned, ready or readable partitions alone.
- `query_command`: A command that looks at the state, from its flags to its exit code.
- `query_options`: Options that several queries have in common.
- `query_run`: The run of a command that queries the state.
- `shared_flags`: The flags that all commands share which look at the tiered state, and their
  variables.
- `source_choice`: The flags of every command that looks at the tiered state.
- `watch_mode`: A query that is repeated.
"""
