"""The thread that runs the event loop, coroutines of user code beside it, virtual time.

- `loop`: the thread that runs the event loop, and the only way into it.
- `virtual_loop`: an event loop in virtual time, without a thread: for simulations.
- `coroutines`: coroutines of user code, on an event loop beside the tasks: started, timed, made
  again.
- `shared_lookup`: a slow function of a key, asked once by all who want to know at the same time.
"""
