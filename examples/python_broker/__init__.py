"""
A broker in Python, as small as one can be that tiers its partitions and reads them back.

`log` holds a partition locally, `tier` stores segments, `copier` and `reader` do the two
things that need metadata, and `broker` puts them together. Metadata is asked through
`broker_adapter`, of a service or of its stand-in.
"""
