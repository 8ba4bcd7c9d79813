"""The services of a cluster: Gearpump's REST API and more, events that are pushed, and the page.

- `gearpump`: the answers of Gearpump's routes, field by field.
- `routes`: the routes, by what they are about.
- `push`: what changes, sent to all who watch the same, and asked for once.
- `security`: who may ask what: tokens, scopes, checks of each request, limits.
- `programs`: programs that are uploaded, and graphs of JSON that become programs.

Needs the extra ``ui``. Start with `server`.
"""
