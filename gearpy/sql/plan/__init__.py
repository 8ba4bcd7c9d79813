"""The planner: relations, what names mean in them, and the steps that a query becomes."""
