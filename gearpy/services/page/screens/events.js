// What happened once in an application: its events, and the failures that no event tells.

const SAME_MS = 1000;

/** Oldest first. */
export const eventsOf = ({ events, failures }) => {
  const told = (at) => events.some((each) => Math.abs(each.at_ms - at) < SAME_MS);
  const more = failures.filter((each) => !told(each.at_ms)).map((each) => ({ at_ms: each.at_ms, kind: "failure", text: each.what }));
  return [...events, ...more].sort((a, b) => a.at_ms - b.at_ms);
};
