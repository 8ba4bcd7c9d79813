// Numbers as people read them: a pair of text and unit; what is not known is a dash, never 0.

const UNKNOWN = ["—", ""];
const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

/** Three significant digits, without an exponent: 4.82, 48.2, 482. */
function short(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.995) return value.toFixed(size < 0.0995 ? 2 : 1);
  if (size < 9.95) return value.toFixed(1);
  return size < 99.5 && value % 1 ? value.toFixed(1) : value.toFixed(0);
}

/** The value in the largest of these units that leaves something before the point. */
function scaled(value, units, step) {
  let at = 0;
  while (at < units.length - 1 && Math.abs(value) >= step * 0.9995) {
    value /= step;
    at += 1;
  }
  return [short(value), units[at]];
}

/** How many in each second. */
export const rate = (value) =>
  known(value) ? scaled(value, ["/s", "k/s", "M/s", "G/s"], 1000) : UNKNOWN;

/** A count where there is little room. */
export const few = (value) => {
  if (!known(value)) return UNKNOWN;
  return Number.isInteger(value) && Math.abs(value) < 1000 ? [String(value), ""] : scaled(value, ["", "k", "M", "G"], 1000);
};

/** A count, exact. */
export const count = (value) => (known(value) ? [value.toLocaleString("en"), ""] : UNKNOWN);

/** A number of any unit: four digits that count, or all before the point. */
export const plain = (value) =>
  known(value) ? value.toLocaleString("en", Math.abs(value) < 1000 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 0 }) : "—";

/** An amount of memory or of disk. */
export const bytes = (value) =>
  known(value) ? scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000) : UNKNOWN;

/** A share of the whole, 0 to 1. */
export const share = (value) =>
  known(value) ? [value > 0 && value < 0.005 ? "<1" : String(Math.round(value * 100)), "%"] : UNKNOWN;

/** Cores of a processor that are in use. */
export const cores = (value) =>
  known(value) ? [value.toFixed(2), value.toFixed(2) === "1.00" ? "core" : "cores"] : UNKNOWN;

const SPANS = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];

/** How long something takes or is behind, ms; the two largest units of it. */
export function span(ms) {
  if (!known(ms)) return UNKNOWN;
  if (ms < 0) ms = 0;
  if (ms < 999.5) return [short(ms), "ms"];
  if (ms < 59_950) return [short(ms / 1000), "s"];
  const at = SPANS.findIndex(([size]) => ms >= size);
  const [size, unit] = SPANS[at];
  const [next, small] = SPANS[at + 1] ?? [1, ""];
  const rest = Math.floor((ms % size) / next);
  return [`${Math.floor(ms / size)}\u202f${unit}${rest ? ` ${rest}` : ""}`, rest ? small : ""];
}

/** Text and unit as one text. */
export const joined = ([text, unit]) => (unit ? `${text}\u202f${unit}` : text);

/** A step by its first and last part: the middle is read elsewhere. */
export const brief = ({ steps, name }) =>
  steps.length > 2 ? `${steps[0]} → … → ${steps.at(-1)}` : steps.join(" → ") || name;

/** `3 tasks`, `1 task`. */
export const many = (number, word) =>
  `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
