"""The master: applications, workers, slots, and the log that makes them durable.

- `actor`: MasterActor: applications, workers and the slots of all; durable facts are in its log.
- `answers`: the answers of a master to questions that change nothing.
- `contacts`: the workers and app masters that a master tells and watches.
- `last_answers`: answers that app masters leave behind for clients that ask after the end.
- `limits`: the limits of a master, from the configuration.
- `policies`: policies by which a master chooses workers: those of gearpy, and of other packages.
- `programs`: ProgramSweeper: removes programs from a master's folder that no application needs.
- `store`: the master's state with the log that makes it durable.
- `workers`: the workers of a master: their paths, their executors, and how to end those.
"""
