"""Security of the services: callers, their rights, and limits.

- `access`: callers, with what they may do.
- `origins`: which hosts and origins a request may name.
- `sessions`: logins of browsers, each a random id in a cookie.
- `limits`: how often a client may ask, and how much it may send.
- `guard`: checks each request before any route sees it, and adds headers to the answer.
- `connections`: how long a connection may be idle or slow.
"""
