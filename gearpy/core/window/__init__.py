"""Windows: records that belong together, their aggregates, and when those are put out."""
