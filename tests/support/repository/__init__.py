"""
The tree itself.

    tree                 the files that are or would be committed
    rules                rules over one file that no other tool checks
    folder_graph         which folders import which others
    capabilities         holds `docs/capabilities.md` to the tests that ran: a pytest plugin
    deployment           the files of `deploy/`, read as their tools read them
    documented_commands  fenced blocks of README and docs, and the commands in them
    installations        environments as pip installs them, for the commands in them
    foreign_tools        promtool, kustomize and kubeconform, fetched once
"""
