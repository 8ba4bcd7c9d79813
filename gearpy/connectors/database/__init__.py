"""What is one for tables of all databases: `table_writer` for sinks, `table_reader` for sources."""
