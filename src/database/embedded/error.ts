/** A refusal of the embedded database. Its message is for the operator: what is wrong and what to do about it. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
}
