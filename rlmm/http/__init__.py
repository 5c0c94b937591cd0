"""
What people and their tools reach: health, metrics and every question as JSON, by HTTP.

Nothing is written through it, and nothing is counted for its sake: what it shows is read from the
engines when somebody asks. Only this package knows aiohttp and the Prometheus client.

May be imported by `rlmm.config`, `rlmm.process`, `rlmm_demo`.

- `app`: The application.
- `authorization`: Who may ask what.
- `broker_files_routes`: Partitions, their files and one file of a broker, by HTTP.
- `connections`: The connections of the HTTP server, and which of them go.
- `openapi`: The OpenAPI 3.1 document, made of the tables of routes and schemas.
- `parameters`: What is written behind the question mark of a URL.
- `protocol`: What is said on one connection below the application.
- `queries`: Every question of `/v1` that has one short answer.
- `refusals`: From an error to what HTTP says.
- `routes`: Every path that is answered, as one table.
- `schemas`: The form of every answer, as JSON Schema.
- `server`: The HTTP server.
- `settings`: What can be chosen about HTTP, and why each default is what it is.
- `streaming`: Long listings.
"""
