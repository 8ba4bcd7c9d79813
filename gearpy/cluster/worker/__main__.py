"""Entry point of ``python -m gearpy.cluster.worker``: an executor, app master or fork server."""

import gc
import os

if __name__ == "__main__":
    gc.disable()  # Looking for garbage would take an eighth of the start.
    from gearpy.cluster.processes.forker import FORK_SERVER, serve
    from gearpy.cluster.worker.child import main

    is_trial = False
    if number := os.environ.pop(FORK_SERVER, ""):
        is_trial = serve(int(number))  # Children order nothing else.
    gc.freeze()
    gc.enable()
    if is_trial:
        from gearpy.cluster.processes.trial_child import main as be_trial

        be_trial()
    main()
