"""Events: news of a topic, asked for once and sent to all of its viewers."""
