const OUTAGE = 'The database cannot serve the request now.';
const MAY_BE_DONE = `${OUTAGE} It may have been carried out:`;

/** What a 503 says, by what the request was to do. The database may have stored a change whose confirmation was lost. */
export const OUTAGE_MESSAGES = {
  read: `${OUTAGE} Try again shortly.`,
  /** A repetition with the same Idempotency-Key adds nothing. */
  idempotentCreate: `${MAY_BE_DONE} repeat it with its Idempotency-Key, or look first if it was sent without one.`,
  /** A repetition may add another. */
  otherPost: `${MAY_BE_DONE} look before you repeat it.`,
  change: `${MAY_BE_DONE} look, or repeat it.`,
} as const;

const messages: readonly string[] = Object.values(OUTAGE_MESSAGES);

export const isOutageMessage = (message: string) => messages.includes(message);
