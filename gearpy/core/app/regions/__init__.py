"""The regions of an application, which start, fail and end each on its own."""
