import type { ActivityRow } from "./contract/ActivityRow";

/** How many rows the list keeps; the oldest go first. */
export const KEPT_ROWS = 10_000;

/** The place of the first row whose number is not below `id`; rows stand in ascending order of their numbers. */
export function placeOf(rows: readonly ActivityRow[], id: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.id ?? Infinity) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `rows` with `fresh` ones put in: the same number takes the old one's place, a number that has left stays away. */
export function mergeRows(rows: readonly ActivityRow[], fresh: readonly ActivityRow[]): ActivityRow[] {
  const merged = rows.slice();
  for (const row of fresh) {
    const at = placeOf(merged, row.id);
    if (merged[at]?.id === row.id) merged[at] = row;
    else if (at > 0 || merged.length < KEPT_ROWS) merged.splice(at, 0, row);
  }
  return merged.length > KEPT_ROWS ? merged.slice(-KEPT_ROWS) : merged;
}

/** The chips above the list. */
export const CHIPS = ["all", "calls", "redactions", "refusals"] as const;
export type Chip = (typeof CHIPS)[number];

/** Whether a row belongs under a chip. */
export function belongs(row: ActivityRow, chip: Chip): boolean {
  const { what } = row;
  switch (chip) {
    case "all":
      return true;
    case "calls":
      return what.kind === "call";
    case "redactions":
      return what.kind === "redaction";
    case "refusals":
      return what.kind === "call" && what.outcome.outcome === "refused";
  }
}
