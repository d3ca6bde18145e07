/** Something that the operator can mend: its message says what is wrong and what to do, and needs no stack. */
export class OperatorError extends Error {}
