"""Entry point of ``python -m gearpy.cluster.worker``: the process of an executor or app master."""

import gc

if __name__ == "__main__":
    gc.disable()  # What is loaded stays: to look for garbage in it takes an eighth of the start.
    from gearpy.cluster.worker.child import main

    gc.freeze()
    gc.enable()
    main()
