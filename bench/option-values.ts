/** Comma-separated names. @throws Error when one is not known */
export function readNames<Name extends string>(
  option: string,
  text: string,
  known: readonly Name[],
): readonly Name[] {
  return text.split(',').map((name) => {
    const found = known.find((each) => each === name);
    if (found === undefined) throw new Error(`--${option} takes ${known.join(', ')}; not ${name}`);
    return found;
  });
}

/** Comma-separated numbers. @throws Error when one is not positive */
export function readNumbers(option: string, text: string): readonly number[] {
  return text.split(',').map((part) => readNumber(option, part));
}

/** Comma-separated numbers, of which any may be 0. @throws Error when one is neither that nor positive */
export function readNumbersFromZero(option: string, text: string): readonly number[] {
  return text.split(',').map((part) => (part === '0' ? 0 : readNumber(option, part)));
}

/** @throws Error when it is not a positive number */
export function readNumber(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${option} takes a number above 0; not ${text}`);
  return value;
}
