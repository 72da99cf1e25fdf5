/** A hue in degrees that is always the same for the same label. Neighbouring labels land far apart. */
export function hueOf(label: string): number {
  let hash = 2166136261;
  for (const character of label) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16777619);
  hash ^= hash >>> 15;
  return ((hash >>> 0) % 24) * 15;
}
