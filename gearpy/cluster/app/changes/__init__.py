"""Changes of one application, on their way to its versions."""
