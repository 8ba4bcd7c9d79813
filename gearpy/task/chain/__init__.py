"""A chain of stages in one task: records run through it without a queue between."""
