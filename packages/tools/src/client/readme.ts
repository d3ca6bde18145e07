import type { ClientOperation } from './operations.js';

interface Names {
  /** Of the package */
  readonly name: string;
  readonly title: string;
  readonly keyPrefix: string;
  /** The operation that examples call */
  readonly list: ClientOperation | undefined;
}

/** A README by the names of the service, for a store that has written none */
export function printReadme(
  { name, title, keyPrefix, list }: Names,
  operations: readonly ClientOperation[],
): string {
  const rows = operations.map(
    ({ name: operation, method, summary }) =>
      `| \`${operation}.${method === 'GET' ? 'query' : 'mutate'}\` | ${summary} |`,
  );
  const imported = `createClient, isApiError${list === undefined ? '' : ', items'}`;
  const call =
    list === undefined
      ? '  // Calls of the operations below'
      : `  for await (const item of items(client.${list.name})) console.log(item);`;
  return `# ${name}

The typed client of the ${title} for browsers, React Native, and Node.js 20.19 or later: [tRPC](https://trpc.io)'s own client with
batches, retries, pages and rate limits taken care of. Its only dependencies are its peers, \`@trpc/client\` and \`@trpc/server\`.

\`\`\`ts
import { ${imported} } from '${name}';

const client = createClient({ baseUrl: 'http://127.0.0.1:3000', apiKey: '${keyPrefix}test_…' });

try {
${call}
} catch (error) {
  if (!isApiError(error)) throw error;
  console.error(error.code, error.fields, error.requestId);
}
\`\`\`

| operation | |
|---|---|
${rows.join('\n')}

Your editor shows what each takes and returns, and which errors there are (\`ErrorCode\`). \`pages\` and \`items\` read a list page by
page. \`client.limits\` is what is left of the key's limits. Calls that are safe to repeat are retried, so turn off the retries of
other libraries.
`;
}
