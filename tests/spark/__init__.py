"""Tests with Spark, which share a JVM that runs while they do."""
