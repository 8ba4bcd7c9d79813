"""Measures gearpy's speed on this machine: `bin/bench`. Not imported by anything else.

- `__main__`, `main`: the command.
- `sol`: messages per second and latency of one hop, in one process or between two.
- `process_cluster`: a real cluster in a folder; `recovery`: how long records stop flowing when
  something fails.
- `crash`: strikes a cluster as planned, and checks the results; `faults`: how processes are harmed;
  `epoch_signs`: what files tell of epochs. `exactly_once`: what is struck, and the plans, of
  `bin/bench exactly-once` and `chaos`; `numbered`: their program and its answer.
- `update`: how long records pause when an application is changed; `beats`: a sink that tells;
  `change_crash`: processes are killed in the middle of changes; `changes`: their commands.
- `simulate`: thousands of clusters, and tasks alone, in virtual time, each with faults of its own;
  `simulated_app` is what they run, and what must come out of it.
- `consensus`: thousands of groups of members that agree on a log, in virtual time, with faults.
- `checkpoint`: what epochs cost, and how soon much state is back.
- `windows`: sum and count over windows, by rows and by columns, and how soon results are there.
- `oracle`: programs of the stream language, compared with what they mean in many examples.
- `stream_language`: numbered records through windows, joins and columns, and their answer.
- `compare`: an earlier commit and this one, in turns; `probe` is one measurement of either.
- `peers`: the same programs on gearpy and on other stream processors, in turns; `peer_jobs`,
  `peer_bytewax` and `peer_spark` are these programs.
- `spark`: how fast windows get to Spark; `spark_start`: how soon a session is there.
- `spark_crash`: windows on their way to Spark's tables, while executors and JVMs are killed;
  `spark_plan`: who is killed when; `spark_program`, `spark_reader`: the program, and a job of
  Spark; `spark_signs`: what files tell.
- `work`: instructions and calls of Python that records and batches take, exact to the digit;
  `one_thread` runs the tasks for it, `work_table` compares with the committed table.
- `processes`: work in Python on one process and on several.
- `measure`: percentiles, memory.
"""
