"""
The log that the events live in: one protocol, kept by memory, by our own files, or by Kafka.
"""
