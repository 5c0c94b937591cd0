"""
The tree itself.

    tree           the files that are or would be committed
    rules          rules over one file that no other tool checks
    folder_graph   which folders import which others
    capabilities   holds `docs/capabilities.md` to the tests that ran: a pytest plugin
    deployment     the files of `deploy/`, read as their tools read them
    installations  environments as pip installs them, for the commands in them
"""
