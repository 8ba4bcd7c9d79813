"""The files of a new project, as `gear new` writes them."""
