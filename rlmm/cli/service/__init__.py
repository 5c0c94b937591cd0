"""
`rlmm serve`: the command, its data folder, and SIGHUP. Nothing imports it.

- `config_reload`: SIGHUP.
- `data_folder`: The data folder of a service.
- `serve`: `rlmm serve`.
"""
