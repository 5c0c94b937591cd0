"""
Holds and answers the metadata of Kafka's tiered storage, the topic `__remote_log_metadata`.

Nothing heavy is imported here: `import rlmm` costs nothing and gives the version, whose only place
this is.
"""

__version__ = "0.1.0"
