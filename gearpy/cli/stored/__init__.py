"""Commands about stored data: checkpoints, savepoints, state, coordinator logs, quarantines."""
