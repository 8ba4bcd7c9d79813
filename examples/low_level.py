"""Word count with tasks of one's own: Split sends words, Sum counts them.

    bin/gear run examples/low_level.py

The same as `wordcount.py`, one level below the stream language: a graph of processors, each a
`Task` class, joined by partitioners. After Gearpump's wordcount example.
"""

from collections import Counter

import gearpy as gp

TEXT = "This is a good start for java! bingo! bingo!"


class Split(gp.Task):
    """Has no inputs: sends the words of a text, again and again, a given number of times."""

    rounds = 0

    def produce(self) -> int:
        """Send the words of the text once."""
        if self.rounds == self.context.config["rounds"]:
            return gp.FINISHED
        self.rounds += 1
        for word in TEXT.split():
            self.context.output(gp.Message(word, self.rounds))
        return 0


class Sum(gp.Task):
    """Counts the words that come to this task and prints the counts at the end."""

    def __init__(self, context: gp.TaskContext) -> None:
        super().__init__(context)
        self.counts: Counter[str] = Counter()

    def on_next(self, message: gp.Message) -> None:
        """Count one word."""
        self.counts[message.value] += 1

    def on_stop(self, *, completed: bool) -> None:
        """Print what was counted."""
        for word, count in sorted(self.counts.items()):
            print(f"{word} {count}", flush=True)


split = gp.Processor(Split, config={"rounds": 1000})
total = gp.Processor(Sum, parallelism=2)
graph = gp.Graph().connect(split, total, gp.HashPartitioner())
app = gp.StreamApplication("low_level", graph)

if __name__ == "__main__":
    gp.run(app)
