"""The master: applications, workers, slots, and the log that makes them durable.

- `actor`: MasterActor: applications, workers and the slots of all; what must last is in its log.
- `answers`: what a master answers when it is asked and nothing changes.
- `contacts`: whom a master talks to, and whose end it hears of.
- `limits`: what the configuration says to a master about the applications it keeps alive.
- `store`: the master's state with the log that makes it durable.
- `workers`: the workers of a master: where they are, what runs there, and what they are told to
  end.
"""
