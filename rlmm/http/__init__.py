"""
HTTP: health, metrics and every query of the metadata as JSON. It writes nothing.

May be imported by `rlmm.config`, `rlmm.process`, `rlmm_demo`.

- `app`: The application.
- `authorization`: The roles that a request needs, and its sender.
- `broker_files_routes`: Partitions, their files and one file of a broker, by HTTP.
- `connections`: The connections of the HTTP server, and the limits on them.
- `openapi`: The OpenAPI 3.1 document, made of the routes and the generated schemas.
- `parameters`: The query parameters of a URL.
- `queries`: The queries of `/v1` with one short answer.
- `refusals`: The status, headers and body of an error.
- `routes`: The table of paths.
- `schemas`: The types of answers, and JSON schemas generated from them.
- `server`: The HTTP server.
- `settings`: The settings of HTTP, and the reason of each default.
- `streaming`: Long listings, page by page.
"""
