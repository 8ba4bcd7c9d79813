"""Entry point of ``python -m gearpy``; the same command line as ``gear``."""

import gc

if __name__ == "__main__":
    gc.disable()  # See `gearpy.cli.terminal.groups`.
    from gearpy.cli.main import main

    gc.enable()
    main()
