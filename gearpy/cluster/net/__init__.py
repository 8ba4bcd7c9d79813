"""The ways in which roles reach each other: endpoints, letters, masters, permissions."""
