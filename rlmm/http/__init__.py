"""
What people and their tools reach: health, metrics and every question as JSON, by HTTP.

Nothing is written through it, and nothing is counted for its sake: what it shows is read from the
engines when somebody asks. Only this package knows aiohttp and the Prometheus client.
"""
