"""Measures gearpy's speed on this machine: `bin/bench`. Not imported by anything else.

- `__main__`, `main`: the command.
- `sol`: messages per second and latency of one hop, in one process or between two.
- `start`: start-up times and memory; `slow_sink`: back-pressure over a minute.
- `process_cluster`: a real cluster in a folder; `recovery`: how long records stop flowing when
  something fails; `chaos`: a word count whose processes are killed, compared with the answer.
- `exactly_once`: numbered records through state into folders, and processes that are killed at the
  worst moments; `numbered`: that program and its answer; `faults`: how processes are harmed.
- `simulate`: thousands of clusters, and tasks alone, in virtual time, each with faults of its own;
  `simulated_app` is what they run, and what must come out of it.
- `checkpoint`: what epochs cost, and how soon much state is back.
- `windows`: sum and count over windows, by rows and by columns, and how soon results are there.
- `oracle`: programs of the stream language, compared with what they mean in many examples.
- `sessions`: sessions of a million keys that come and go: whether memory grows.
- `stream_language`: numbered records through windows, joins and columns, and their answer.
- `compare`: an earlier commit and this one, in turns; `probe` is one measurement of either.
- `peers`: the same programs on gearpy and on other stream processors, in turns; `peer_jobs`,
  `peer_bytewax` and `peer_spark` are these programs.
- `spark`: how fast windows get to Spark; `spark_start`: how soon a session is there.
- `spark_crash`: windows on their way to Spark's tables, while executors and JVMs are killed;
  `spark_plan`: who is killed when, and the report; `spark_program`, `spark_reader`: the program,
  and a job of Spark; `spark_signs`: what files tell.
- `crash_watch`: what `exactly_once` and `spark_crash` share: waiting, notes, a report.
- `measure`: percentiles, memory.
"""
