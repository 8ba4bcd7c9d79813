"""Commands that are a cluster or a part of one, or set it up.

- `commands`: ``gear local``, ``gear master``, ``gear worker``: they run until told to stop.
- `masters`: the masters of a cluster: which there are, and which of them leads.
- `workers`: ``gear worker drain``: has a worker leave its cluster.
- `services`: ``gear services``: the REST API and the page of a cluster; ``gear token ...``: who may
  use it.
- `spark`: ``gear spark ...``: a cluster inside a Spark application.
- `certs`: ``gear certs ...``: makes certificates, and says which file goes where.
- `metrics`: ``gear metrics ...``: what is measured, rules for Prometheus, a dashboard for Grafana.
- `config`: ``gear config ...``: shows the configuration, or checks it.
"""
