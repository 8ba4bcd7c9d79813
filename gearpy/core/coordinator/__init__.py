"""The coordinator log of an application: the memory that its app masters share."""
