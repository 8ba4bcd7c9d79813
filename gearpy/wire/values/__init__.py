"""Values of users <-> bytes."""
