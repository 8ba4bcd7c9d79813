"""Entry point of ``python -m gearpy``; the same command line as ``gear``."""

from gearpy.cli.main import main

if __name__ == "__main__":
    main()
