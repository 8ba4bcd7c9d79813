"""The worker: slots, and the processes or threads that it starts in them."""
