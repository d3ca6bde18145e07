import pg from 'pg';

/** Opens connections, which are added to `held`, until the server refuses a further one. Returns why it did. */
export async function takeAllConnections(url: string, held: pg.Client[]): Promise<string> {
  for (;;) {
    const client = new pg.Client(url);
    client.on('error', () => {});
    const refusal = await client.connect().then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (refusal !== undefined) return refusal;
    held.push(client);
  }
}
