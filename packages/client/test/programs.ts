/** Uses the client as a front-end does, and prints what it got. */
export const PROGRAM = `
import { type AppRouter, createClient, isApiError, items, type Key, type Pet } from '@animal-store/client';
import { createTRPCClient, httpBatchLink } from '@trpc/client';

declare const process: { readonly argv: readonly string[] };
const [, , baseUrl = '', apiKey = ''] = process.argv;
const client = createClient({ baseUrl, apiKey });
const pet: Pet = await client.createPet.mutate({ name: 'Miso', categoryId: 2, status: 'pending' });
const names: string[] = [];
for await (const { name } of items(client.listPets, { limit: 1 })) names.push(name);
const failure: unknown = await client.getPet.query({ petId: 0 }).catch((error: unknown) => error);
const code = isApiError(failure) ? failure.code : undefined;
const isMissing: boolean = code === 'not_found';
const { scopes }: Key = await client.getKey.query();
const limit = client.limits.current?.limit;
const link = httpBatchLink({ url: \`\${baseUrl}/trpc\`, headers: { authorization: \`Bearer \${apiKey}\` } });
const [first]: Pet[] = await createTRPCClient<AppRouter>({ links: [link] }).listPets.query({ limit: 1 });
console.log(JSON.stringify({ pet, names, isMissing, scopes, limit, plain: first?.name }));
`;

/** A program of the older module system, whose errors a module of the newer one may have to recognize. */
export const COMMONJS_PROGRAM = `
import client = require('@animal-store/client');

declare const process: { readonly argv: readonly string[] };
async function main(): Promise<void> {
  const [, , baseUrl = '', apiKey = ''] = process.argv;
  const store = client.createClient({ baseUrl, apiKey });
  const pet: client.Pet = await store.createPet.mutate({ name: 'Miso', categoryId: 2 });
  const failure: unknown = await store.getPet.query({ petId: 0 }).catch((error: unknown) => error);
  const code: client.ErrorCode | undefined = client.isApiError(failure) ? failure.code : undefined;
  const { isApiError } = await import('@animal-store/client');
  console.log(JSON.stringify({ name: pet.name, code, isRecognized: isApiError(failure) }));
}
main();
`;

/** Uses tRPC's own streams. */
export const STREAM_PROGRAM = `
import { createTRPCClient, httpBatchStreamLink } from '@trpc/client';

const [, , baseUrl, key] = process.argv;
const connect = (token) =>
  createTRPCClient({ links: [httpBatchStreamLink({ url: baseUrl + '/trpc', headers: { authorization: 'Bearer ' + token } })] });
const listed = Array.isArray(await connect(key).listPets.query({ limit: 1 }));
const failure = await connect('nonsense').listPets.query().catch((error) => error);
console.log(JSON.stringify({ listed, code: failure.data?.error?.code }));
`;

/** Has one error in each line from the fifth on, except for the declaration of `failure`. */
export const WRONG_PROGRAM = `
import { createClient, isApiError } from '@animal-store/client';

const client = createClient({ baseUrl: '', apiKey: '' });
await client.createPet.mutate({ name: 'Miso', categoryId: '2' });
await client.createPet.mutate({ name: 'Miso', categoryId: 2, colour: 'red' });
await client.createPet.mutate({ name: 'Miso' });
await client.listPets.query({ status: 'lost' });
(await client.listPets.query())[0]?.colour;
await client.noSuchOperation.query();
const failure: unknown = undefined;
if (isApiError(failure)) failure.code === 'no_such_code';
`;
