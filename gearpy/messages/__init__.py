"""Messages of actors and tasks: plain data, no behaviour.

- `data`: task to task (records, acks). One object per batch, never one per record; its size, too.
- `late_time`: event times that know an earlier promise of their partition.
- `table`: the records of a batch as columns.
- `type_variables`: type variables of generic classes of records.
- `app`: app master and executors.
- `actor_app`: user code to user code, in applications of actors.
- `client`: client -> master, and the answers.
- `cluster`: master, workers and app masters.
- `masters`: questions about masters, and the answers.
- `metrics`: measurements: reports of executors, questions of clients and their answers.
- `served`: the base of messages and views that the REST API gives as they are.
- `summaries`: applications, workers and failures as people see them; parts of reports and answers.
- `peer`: process to process, beneath all others.
- `question`: what tells of which kind the answer to a question is.
- `versions`: which versions of all these are understood, and what the newest has added.

Everything in `actor_app`, `app`, `client`, `cluster`, `masters`, `metrics`, `peer` and `summaries`
is a frozen struct of plain values, registered by its class name with `wire.codec`, and can cross
a process boundary. Any layer above may import this.
"""
