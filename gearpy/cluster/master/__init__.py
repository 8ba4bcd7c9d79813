"""The master: applications, workers, slots, and the log that makes them durable."""
