/** Uses the client as a front-end does, and prints what it got. */
export const PROGRAM = `
import { type AppRouter, createClient, isApiError, type Key, type Pet } from '@animal-store/client';
import { createTRPCClient, httpBatchLink } from '@trpc/client';

declare const process: { readonly argv: readonly string[] };
const [, , baseUrl = '', apiKey = ''] = process.argv;
const client = createClient({ baseUrl, apiKey });
const pet: Pet = await client.createPet.mutate({ name: 'Miso', categoryId: 2, status: 'pending' });
const names: string[] = [];
for await (const page of client.listAllPets({ limit: 1 })) names.push(...page.map(({ name }) => name));
const failure: unknown = await client.getPet.query({ petId: 0 }).catch((error: unknown) => error);
const code = isApiError(failure) ? failure.code : undefined;
const isMissing: boolean = code === 'not_found';
const { scopes }: Key = await client.getKey.query();
const limit = client.limits.current?.limit;
const link = httpBatchLink({ url: \`\${baseUrl}/trpc\`, headers: { authorization: \`Bearer \${apiKey}\` } });
const [first]: Pet[] = await createTRPCClient<AppRouter>({ links: [link] }).listPets.query({ limit: 1 });
console.log(JSON.stringify({ pet, names, isMissing, scopes, limit, plain: first?.name }));
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
