"""State of applications, looked at from outside: as tables of Arrow."""
