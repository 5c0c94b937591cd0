"""
The corpus as JSON for any language: scenarios, golden records, partitioner vectors.

Nothing imports it.
"""
