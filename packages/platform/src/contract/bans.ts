/*
 * The rule of bans. A key is banned when as many of its requests are denied as its plan allows per minute, within a minute of
 * the first denial (`countDenied` of @animal-store/limits). The first ban is the shortest. Each ban that starts soon after the
 * one before lasts twice as long, up to a day.
 */

/** How long the first ban of a key lasts. */
export const FIRST_BAN_SECONDS = 300;
/** The longest ban that the service starts; an operator's may last longer. */
export const MAX_BAN_SECONDS = 86_400;
/** A ban that starts within this time after the end of the previous one lasts twice as long. */
const DOUBLING_WINDOW_MS = 86_400_000;

/** The last ban of a key: null for both if it had none, or if an operator has lifted it */
export interface LastBan {
  readonly bannedUntil: Date | null;
  readonly banSeconds: number | null;
}

/** How long a ban of the key would last if it started at `now`, in Unix milliseconds. */
export function nextBanSeconds({ bannedUntil, banSeconds }: LastBan, now: number): number {
  const isRepeated = bannedUntil !== null && now - bannedUntil.getTime() < DOUBLING_WINDOW_MS;
  if (!isRepeated || banSeconds === null) return FIRST_BAN_SECONDS;
  return Math.min(banSeconds * 2, MAX_BAN_SECONDS);
}
