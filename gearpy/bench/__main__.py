"""``python -m gearpy.bench``: see `gearpy.bench.main`."""

from gearpy.bench.main import main

main()
