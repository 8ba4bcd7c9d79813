"""Measurements: how they are counted, kept and added up, as plain values and classes.

- `catalogue`: all metrics: name, kind, unit, labels, and where each is taken from.
- `histogram`: distributions with fixed buckets that can be added.
- `rings`: the last points in time, bounded.
- `samples`: the clock and the load of a task as one sample; pages that fit into a message.
- `application`: all that an app master keeps of its application: newest, lately, events.
- `history`: measurements by Gearpump's names, of five minutes and of three days.
- `task_history`: those of tasks; `aggregators`: of tasks together, or of some of them.
- `past`: what an application leaves behind of its measurements when it ends.
- `user`: metrics that programs make themselves.
- `prometheus`: all of it as the page that Prometheus reads.
- `alert_rules`: when somebody should look, as rules for Prometheus.
- `dashboard`: charts of all that matters, for Grafana.
- `process`: measures the process at hand, which is the only module here with a clock of its own.

Counting itself is where work is done, once for each batch or turn: see `task.runtime.metering`.
"""
