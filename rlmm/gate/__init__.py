"""
The gate: every question passes it, and only what is known to be current is answered.

`state` decides per metadata partition whether it is open, `admission` who may ask, `reads` answers,
`barrier` lets readers wait. It knows nothing of how the log is read.
"""
