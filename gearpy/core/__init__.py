"""The deciding half of gearpy: plain classes without thread, socket, clock or logging.

Each is given events, ``now_ms`` and an ``rng``, and returns what should happen; actors and
transports are thin shells around them. Any layer above may import this.

The graph:
- `graph`: order, levels and cycles of a directed graph.
- `dag`: processors, edges and tasks of one application; immutable and checked.
- `graph_difference`: in what the graphs of two processes differ, for people. `state_moves`: what
  becomes of the state of each step when a graph takes the place of another one.
- `stable_hash`: the hash that routes keys, alike in every process; key groups.
- `partition`: which task gets which record; `table_partition`: which gets which rows of a table.

One link, one task:
- `flow`: credit between a task and the tasks downstream; loss detection.
- `watermark`: event time of a task over its input links.
- `event_order`: records that wait for event time, and come in its order.
- `alignment`: epochs of a task over its input links.
- `sizing`: about how much memory records take, for limits.
- `times`: durations and event times as people write them.
- `copies`: records of one's own, where several have one. `fields`: fields of records, by name.
- `column_values`: which values a column keeps as they are.

Steps of the stream language:
- `window`: which records belong together; `trigger`: when what they come to is put out.
- `panes`: what a key has in one window, and what becomes of it; kept by `aligned_panes`,
  `session_panes` and `count_panes`; `timed_panes`: the clock of the first two.
- `sliding_pieces`: sliding windows that fold a record once.
- `agenda`: what is due at a time, and the oldest of many times.
- `aggregates`: count, sum and so on: what many records come to.
- `joins`: what all joins have in common; `joins_window`, `joins_session`, `joins_interval`,
  `joins_asof` and `joins_latest` are their kinds, `joins_log` what they keep over restarts.
  `joins_table`: the rows of a table that is complete, by key.
- `async_window`: records whose results come later; `attempts`: calls of something slow.
  `lookup_cache`: what was looked up lately.

State of one task, after Gearpump:
- `monoids`: values that add up; `monoid_state`: state that tells epochs apart; `window_state`: the
  same over a sliding window; `checkpoint_manager`: checkpoints by event time.

Window logs:
- `window_log`: which files to read next, hide, compact and remove; `lane_owner`: who may write.
- `lanes`: several lanes read as one stream: whose turn it is, what can be promised.

One application:
- `placement`: which executor gets which task.
- `drain`: how long a good end may take that was asked for.
- `task_manager`: what starts, what restarts after a failure, and the end; `decisions`: what it can
  tell an app master to do. It has `executors`, a process for each that it wants, and regions:
- `regions`: the connected parts of a dag; `region`: one of them at work, attempt after attempt;
  `region_set`: all of them.
- `deployment`: the start-up and the end of the tasks of a region, step by step.
- `epochs`: one attempt's epochs, complete, given up, committed; `epoch_pace`: when the next begins;
  `epoch_cut`: at which event time it ends; `epoch_history`: which are kept, which files are
  garbage; `region_epochs`: all of it, attempt after attempt.
- `incidents`: what goes wrong, each failure counted once; `causes`: texts.
- `coordinator_log`: what app masters must know of each other, as messages and views;
  `coordinator_segments`: who may append, in steps; `coordinator_codec`: its files as bytes;
  `coordinator_repair`: what is left of damaged ones.
- `clock`: the application clock, stalls, and what holds it (`lazy_min` makes it cheap).
- `turn_limit`: turns of tasks that last too long.
- `progress`: how far the application is. `consumers`: who takes what its sinks have shown;
  `handoff`: what one of them gets next, and when it has to be waited for.
- `restart`: how often something may fail, and when it is tried again.

The cluster:
- `registry`: the master's applications and the states they go through.
- `master_state`: all that a master must not forget; `master_commands`: what changes it.
- `app_masters`: which of them run, are launched again, or given up.
- `checkpoint_names`: the cluster's id, where applications store, what they begin with.
- `scheduling`: requests for slots and who is served first; `slots`: who has those of a worker.

Tables in partitions:
- `partition_paths`: folders that stand for the values of columns.
- `table_commits`: exactly once into a table that changes by transactions.

Start with `dag`, then `flow`, then `clock`.
"""
