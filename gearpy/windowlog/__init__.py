"""The durable hand-off of finished windows: a folder, here or at a URL, that several may read.

Which files to read is decided by `core.handover.window_log`. May be imported by task and above, and
by programs that are no application of gearpy: it starts nothing, and loads quickly.
"""
