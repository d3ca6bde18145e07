/** Polls until there is a value, for at most `timeoutMs`, then throws. */
export async function until<T extends NonNullable<unknown>>(
  read: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 20_000,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const value = await read();
    if (value !== undefined) return value;
    if (performance.now() > deadlineMs) throw new Error(`No value within ${timeoutMs} ms: ${read}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
