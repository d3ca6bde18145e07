/** The embedded database cannot be had; the message says why and what to do. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
}
