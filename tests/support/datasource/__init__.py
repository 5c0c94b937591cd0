"""
The Spark data source, mostly without Spark.

    readable_tiers   tiers to read, and the data source planned and read in this process
    extents          extents of read plans
    decoded_rows     rows by the decoder and by readers that know nothing of it
    killed_readers   a source whose readers are killed as by an out-of-memory killer
    reading_process  a driver of its own that reads queries with Spark
"""
