/** The reader of a report has closed it, as `head` does. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

/**
 * Prints a report part by part, each once the previous part has been written. Stops when a part cannot be written, which
 * is no error of the command if its reader is gone.
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
