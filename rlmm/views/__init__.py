"""
What people are shown: plain values that JSON and MessagePack can say, made of values of the engine.

Pure. The names of fields are stable and the same wherever they are shown. Nothing is asked for
here, and no time is looked up: both are passed in.
"""
