/** How long bans last. */
export const bans = {
  firstMs: 300_000,
  longestMs: 86_400_000,
  /** A ban that starts within this time of the END of the one before lasts twice as long. */
  rememberedMs: 86_400_000,
} as const;

/** How long a ban lasts that begins now, `leftMs` before (or, negative, after) the end of the last one. */
export function nextBanMs(last: { leftMs: number; lengthMs: number }): number {
  const remembered = last.lengthMs > 0 && -last.leftMs < bans.rememberedMs;
  return remembered ? Math.min(last.lengthMs * 2, bans.longestMs) : bans.firstMs;
}
