"""
A broker in Python, as small as one can be that tiers its partitions and reads them back.

`log` holds a partition, `tier` stores segments, `copier` and `reader` ask for metadata through
`broker_adapter`, and `broker` puts them together.
"""
