"""Entry point of ``python -m gearpy.cluster.worker``: an executor, app master or fork server."""

import gc
import os

if __name__ == "__main__":
    gc.disable()  # What is loaded stays: to look for garbage in it takes an eighth of the start.
    from gearpy.cluster.worker.child import main
    from gearpy.cluster.worker.forker import FORK_SERVER, serve

    if number := os.environ.pop(FORK_SERVER, ""):
        serve(int(number))
    gc.freeze()
    gc.enable()
    main()
