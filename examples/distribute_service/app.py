"""Copy a program to every machine of a cluster, and keep a service of it running there.

    bin/gear app submit examples/distribute_service
    bin/gear app ask greeters where

The folder is the artifact: it is uploaded once and unpacked on each machine. A service that dies
is started again by its executor; an executor that dies, by the cluster.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gearpy as gp

CHECK_MS = 100


class ServiceMaster(gp.AppMaster):
    """Knows where the services are."""

    def on_start(self) -> None:
        """Have a service on each worker, also on those that come later."""
        self.services: dict[int, Any] = {}
        self.context.request_on_each_worker()

    def on_message(self, executor: int, message: Any) -> None:
        """Note where a service is now."""
        self.services[executor] = message

    def on_lost(self, executor: int, cause: str) -> None:
        """Forget the service of an executor that is gone, with all that it had started."""
        self.services.pop(executor, None)

    def on_question(self, question: Any) -> Any:
        """Tell where the services are."""
        return {f"executor {executor}": each for executor, each in sorted(self.services.items())}


class ServiceExecutor(gp.AppExecutor):
    """Starts the service, and again when it has ended."""

    def on_start(self) -> None:
        """Start it, and look after it."""
        self.starts = 0
        self.run_service()
        self.context.schedule(CHECK_MS, self.check)

    def run_service(self) -> None:
        """Start the service and tell its port."""
        program = Path(__file__).parent / "greeter.py"
        command = [sys.executable, str(program)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        self.starts += 1
        self.context.tell({"port": port, "pid": self.process.pid, "starts": self.starts})

    def check(self) -> None:
        """Start the service again if it has ended."""
        if self.process.poll() is not None:
            self.run_service()
        self.context.schedule(CHECK_MS, self.check)

    def on_stop(self) -> None:
        """Stop the service."""
        self.process.kill()


app = gp.ActorApp("greeters", master=ServiceMaster, executor=ServiceExecutor)
