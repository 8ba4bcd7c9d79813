"""The thread that runs the event loop, coroutines of user code beside it, virtual time."""
