/** Whoever reads a report has seen enough, as `head` has. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

/**
 * Prints a report part by part, each once the one before has been written. Stops where it cannot be written: only a reader
 * who is gone is no error of the command.
 *
 * @throws ReaderGone
 */
export async function printReport(
  parts: Iterable<string> | AsyncIterable<string>,
  output: NodeJS.WritableStream = process.stdout,
): Promise<void> {
  for await (const part of parts) {
    const error = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => {
      output.write(part, resolve);
    });
    if (error?.code === 'EPIPE') throw new ReaderGone();
    if (error) return;
  }
}
