"""Programs that are uploaded, and graphs of JSON that become programs.

No code of a user runs in the process of the services: a program is packed and sent, and what is
wrong in it fails the application.
"""
