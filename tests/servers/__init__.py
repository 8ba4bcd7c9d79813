"""Real servers on loopback for tests: downloaded once, started on free ports, killed at will.

- `fixtures`: what tests ask for, such as `kafka` or `own_kafka`. Start here.
- `recipes`: programs from registries in a cache that all runs share.
- `process`: a server as a process: started, stopped, killed, frozen, started again.
- `shared`: one server for all processes of a test run.
- `kafka`: brokers; `registry`: schemas of their records; `postgres`, `mariadb`: database
  servers; `hdfs`: a name node and a data node; `s3`, `gcs`, `azure`: object stores;
  `faulty_proxy`: what a bad network makes of them.
- `programs`: what tests start by themselves; `checker`: what judges histories.
- `guard`: ends servers with the test run.

`python -m tests.servers` downloads everything that is not in the cache.
"""
