"""
The package in which Spark finds the format `rlmm` by itself: Spark looks into packages whose names
begin with `pyspark_` for a `DefaultSource`. Importing it costs nothing but where pyspark is
installed.
"""

from spark_tiering.data_source.source import RlmmDataSource as DefaultSource

__all__ = ["DefaultSource"]
