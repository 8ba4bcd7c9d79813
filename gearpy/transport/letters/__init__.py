"""Letters between the actors of different processes, and questions of clients."""
