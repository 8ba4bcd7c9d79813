"""Run a command on every machine of a cluster, and gather what it prints.

    bin/gear app submit examples/distributed_shell.py
    bin/gear app ask shell "uname -a"

An application of actors: no streams, an app master and an executor on each worker. Who may submit
to the cluster may ask, and nobody else.
"""

import shlex
import subprocess
from typing import Any

import gearpy as gp

TIMEOUT_S = 30


class ShellMaster(gp.AppMaster):
    """Hands a command to all executors, and answers when the last one has."""

    def on_start(self) -> None:
        """Have an executor on each worker, also on those that come later."""
        self.asked: dict[int, tuple[Any, set[int], dict[str, Any]]] = {}
        self.number = 0
        self.context.request_on_each_worker()

    def on_question(self, question: Any) -> Any:
        """Have a command run everywhere."""
        if not isinstance(question, str) or not question.strip():
            raise ValueError(f"a command is a text, this is {question!r}")
        executors = dict(self.context.executors)
        if not executors:
            raise ValueError("no executor is up yet: ask again in a moment")
        self.number += 1
        answer = self.context.later()
        self.asked[self.number] = (answer, set(executors), {})
        for executor in executors:
            self.context.tell(executor, [self.number, question])
        return answer

    def on_message(self, executor: int, message: Any) -> None:
        """Take the output of one machine."""
        number, output = message
        self.take(number, executor, output)

    def on_lost(self, executor: int, cause: str) -> None:
        """Answer for an executor that is lost."""
        for number in list(self.asked):
            self.take(number, executor, {"failed": cause})

    def take(self, number: int, executor: int, output: Any) -> None:
        """Note one output; with the last one the client is answered."""
        if number not in self.asked:
            return
        answer, waiting, outputs = self.asked[number]
        if executor in waiting:
            waiting.discard(executor)
            outputs[f"executor {executor}"] = output
        if not waiting:
            del self.asked[number]
            answer.set(outputs)


class ShellExecutor(gp.AppExecutor):
    """Runs commands, one after the other."""

    def on_message(self, message: Any) -> None:
        """Run one command and tell its end."""
        number, command = message
        try:
            done = subprocess.run(
                shlex.split(command), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
            output = {"exit": done.returncode, "out": done.stdout, "err": done.stderr}
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            output = {"failed": str(error)}
        self.context.tell([number, output])


app = gp.ActorApp("shell", master=ShellMaster, executor=ShellExecutor)
