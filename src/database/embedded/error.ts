import { OperatorError } from '../../operator-error.js';

/** A refusal of the embedded database. */
export class EmbeddedError extends OperatorError {
  override readonly name = 'EmbeddedError';
}
