"""The services of a cluster: Gearpump's REST API and more, events that are pushed, and the page.

- `server`: the services as a thread of this process: listens, serves, stops.
- `application`: all routes with their guard, as one ASGI application.
- `deps`: what every route is given: the cluster, and what the services were started with.
- `problems`: errors of gearpy as answers, each with its status, its text and the fix.
- `gearpump`: the answers of Gearpump's routes, field by field.
- `routes`: the routes, by what they are about.
- `push`: what changes, sent to all who watch the same, and asked for once.
- `security`: who may ask what: tokens, scopes, checks of each request, limits.
- `programs`: programs that are uploaded, and graphs of JSON that become programs.
- `static`: serves the files of the page, which are in `page`; nothing else of the disk.

Needs the extra ``ui``. Start with `server`.
"""
