"""Try many parameters, as many at a time as there are executors; the slots are a work queue.

    bin/gear app submit examples/sweep.py -- --executors 2 --trials 40
    bin/gear app ask sweep progress

Trials of an executor that is lost are tried again. What is done is stored at the master, so an app
master that takes over goes on from there.
"""

import argparse
import json
import math
from typing import Any

import gearpy as gp


class SweepMaster(gp.AppMaster):
    """Gives each executor a trial at a time."""

    def on_start(self) -> None:
        """Go on from the results that are stored."""
        config = self.context.config
        stored = self.context.values.get("results", b"{}")
        self.results: dict[str, float] = json.loads(stored)
        self.todo = [n for n in range(config["trials"]) if str(n) not in self.results]
        self.busy: dict[int, int] = {}
        self.context.request(config["executors"])
        self.end_if_done()

    def on_executor(self, executor: int) -> None:
        """Give a new executor its first trial."""
        self.give(executor)

    def on_message(self, executor: int, message: Any) -> None:
        """Take a result, and give the next trial."""
        trial, score = message
        self.busy.pop(executor, None)
        self.results[str(trial)] = score
        self.context.store("results", json.dumps(self.results).encode())
        self.give(executor)
        self.end_if_done()

    def on_lost(self, executor: int, cause: str) -> None:
        """Have the trial of a lost executor tried again."""
        if (trial := self.busy.pop(executor, None)) is not None:
            self.todo.append(trial)

    def on_question(self, question: Any) -> Any:
        """Tell how far it is, and the best so far."""
        best = max(self.results, key=self.results.__getitem__, default=None)
        return {"done": len(self.results), "trials": self.context.config["trials"], "best": best}

    def give(self, executor: int) -> None:
        """Give an executor a trial, if one is left."""
        if self.todo:
            self.busy[executor] = self.todo.pop(0)
            self.context.tell(executor, self.busy[executor])

    def end_if_done(self) -> None:
        """End when all trials have a result."""
        if len(self.results) == self.context.config["trials"]:
            self.context.succeed()


class SweepExecutor(gp.AppExecutor):
    """Tries one parameter at a time."""

    def on_message(self, message: int) -> None:
        """Try it: the score is highest at 0.37."""
        parameter = message / self.context.config["trials"]
        score = sum(math.cos((parameter - 0.37) * n / 5000) for n in range(50_000)) / 50_000
        self.context.tell([message, score])


def main(args: list[str]) -> gp.ActorApp:
    """Make the application."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--trials", type=int, default=20)
    config = vars(parser.parse_args(args))
    return gp.ActorApp("sweep", master=SweepMaster, executor=SweepExecutor, config=config)
