"""Tests of services, which share a cluster with an application that runs while they do."""
