// Kinds of events, as `EventKind` of the messages has them.

/** Those that tell of something that went wrong. */
export const LOUD = new Set(["restart", "epoch-failed", "fell-back", "executor-lost", "failed", "failure"]);
