"""Types of columns that files tell, and values that these types would change."""
