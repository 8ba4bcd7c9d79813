"""A cluster of gearpy inside an application of Spark: workers as tasks, and masters, if several.

- `cluster`: SparkCluster: starts such a cluster in a session, submits applications, ends it.
- `submitted`: SubmittedApplication: an application that this process has submitted to it.
- `jobs`: GuestJobs: one job of Spark for each worker or master, started again when Spark has given
  it up.
- `departures`: Departures: which workers are on executors that Spark is about to take away.
- `sizing`: WorkerCount: how many workers there shall be, by what applications need. Pure.
- `tending`: WorkerTending: starts and drains workers while a cluster lives.
- `order`: WorkerOrder, MasterOrder: what a task of Spark is told, and the configuration that
  follows. Pure.
- `task`: what a task of Spark does to be a worker.
- `masters`: GuestMasters: three masters in tasks of Spark, as their driver sees them.
- `seats`: MasterSeats: decides which of these tasks begins at whose place. Pure.
- `seat_notes`: SeatNotes: notes between these tasks and their driver, in the cluster's folder.
- `master_task`: what a task of Spark does to be one of several masters.
- `tie`: ends the process of a worker or master when its task of Spark is over.
- `certificates`: certificates of such a cluster, whose hosts are known only when they are there.
- `room`: whether Spark has room for the workers, and errors of Spark in one line. Pure.
"""

from gearpy.distribution import require

require("Spark", "pyspark")
