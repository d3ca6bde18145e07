import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { LRUCache } from 'lru-cache';
import { isWellFormedKey } from '../packages/platform/src/keys/format.js';
import { PET_COLUMNS, pool } from './baseline-database.js';
import { ApiError, isName, parseJson, readBody, readId, readInteger } from './baseline-input.js';
import { ANONYMOUS, countRequest, type Headers, type Limits } from './baseline-limits.js';
import { changeOrder, changeStatus, placeOrder } from './baseline-orders.js';

/*
 * The least that the measured requests can cost: their REST side written by hand, with the checks, limits, headers and
 * errors of the real service, and nothing in between but node:http, named statements of pg, and one Redis call per
 * request. No framework, log, metrics, or shutdown. `npm run bench` reports the other servers relative to this one.
 */

const PORT = Number(process.env.PORT);
const KEY_TTL_MS = 1_000;
const MAX = Number.MAX_SAFE_INTEGER;
const STATUSES = ['available', 'pending', 'sold'];

type ApiKey = Limits & { readonly id: string };

const apiKeys = new LRUCache<string, { found: ApiKey | undefined }>({ max: 10_000, ttl: KEY_TTL_MS });

createServer((request, response) => {
  const headers: Headers = { 'X-Request-Id': randomUUID() };
  handle(request, headers).then(
    ({ status, body }) => send(response, status, headers, body),
    (error: unknown) => {
      const isKnown = error instanceof ApiError;
      const { status, code, message } = isKnown
        ? error
        : new ApiError(503, 'service_unavailable', 'Try again.');
      if (status === 503) headers['Retry-After'] = '1';
      send(response, status, headers, { code, message, status });
    },
  );
}).listen(PORT, '127.0.0.1');
process.on('SIGTERM', () => process.exit());

function send(response: ServerResponse, status: number, headers: Headers, value: unknown): void {
  const body = JSON.stringify(value);
  headers['Content-Type'] = 'application/json';
  headers['Content-Length'] = String(Buffer.byteLength(body));
  response.writeHead(status, headers).end(body);
}

const METHODS: Readonly<Record<string, readonly string[]>> = {
  '/v1/pets': ['GET', 'POST', 'HEAD'],
  '/v1/pets/': ['GET', 'PATCH', 'HEAD'],
  '/v1/store/orders': ['POST'],
  '/v1/store/orders/': ['PATCH'],
};

/** Route, key and limit, operation. */
async function handle(
  request: IncomingMessage,
  headers: Headers,
): Promise<{ status: number; body: unknown }> {
  const { method, url = '' } = request;
  const queryStart = url.indexOf('?');
  const path = queryStart < 0 ? url : url.slice(0, queryStart);
  const route = /^\/v1\/(?:pets|store\/orders)\//.exec(path)?.[0] ?? path;
  const methods = METHODS[route];
  if (methods === undefined) throw new ApiError(404, 'not_found', 'There is no such route.');
  if (!methods.includes(method ?? '')) {
    headers.Allow = methods.join(', ');
    throw new ApiError(405, 'method_not_allowed', `This path supports ${headers.Allow} only.`);
  }
  await admit(request, headers);
  const id = decodeURIComponent(path.slice(route.length));
  if (route === '/v1/store/orders') return placeOrder(await readBody(request), headers);
  if (route === '/v1/store/orders/') return changeOrder(id, await readBody(request));
  if (method === 'POST') return create(await readBody(request), headers);
  if (method === 'PATCH') return update(id, await readBody(request));
  if (route === '/v1/pets/') return get(id, headers);
  return list(new URLSearchParams(queryStart < 0 ? '' : url.slice(queryStart)), headers);
}

async function admit(request: IncomingMessage, headers: Headers): Promise<void> {
  const token = /^bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1];
  const apiKey = token === undefined ? undefined : await authenticate(token);
  await countRequest(apiKey?.id ?? request.socket.remoteAddress, apiKey ?? ANONYMOUS, headers);
  if (apiKey !== undefined) return;
  headers['WWW-Authenticate'] = 'Bearer';
  const code = token === undefined ? 'missing_api_key' : 'invalid_api_key';
  throw new ApiError(401, code, 'The API key is not valid.');
}

async function authenticate(token: string): Promise<ApiKey | undefined> {
  const known = apiKeys.get(token);
  if (known !== undefined) return known.found;
  if (!isWellFormedKey(token, 'as_test_')) return undefined;
  const { rows } = await pool.query<ApiKey>({
    name: 'key',
    text: `SELECT id, per_minute AS "perMinute", per_day AS "perDay" FROM api_keys WHERE hash = $1
      AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    values: [createHash('sha256').update(token).digest()],
  });
  apiKeys.set(token, { found: rows[0] });
  return rows[0];
}

const LIST = `SELECT ${PET_COLUMNS} FROM pets WHERE id > $1 ORDER BY id LIMIT $2`;
const LIST_BY_STATUS = `SELECT ${PET_COLUMNS} FROM pets
  WHERE (status, id) > ($3::pet_status, $1) AND status <= $3 ORDER BY status, id LIMIT $2`;

async function list(query: URLSearchParams, headers: Headers) {
  const limit = readInteger(query, 'limit', 1, 100) ?? 20;
  const cursor = readInteger(query, 'cursor', -MAX, MAX) ?? -MAX;
  const status = query.get('status');
  if (status !== null && !STATUSES.includes(status)) {
    throw new ApiError(400, 'invalid_request', `status must be one of ${STATUSES.join(', ')}.`);
  }
  const { rows } = await pool.query<{ id: number }>(
    status === null
      ? { name: 'list', text: LIST, values: [cursor, limit + 1] }
      : { name: 'list-by-status', text: LIST_BY_STATUS, values: [cursor, limit + 1, status] },
  );
  if (rows.length > limit) {
    rows.pop();
    query.set('cursor', String(rows.at(-1)?.id));
    headers.Link = `<http://127.0.0.1:${PORT}/v1/pets?${query}>; rel="next"`;
  }
  return { status: 200, body: rows };
}

async function get(text: string, headers: Headers) {
  headers.Deprecation = '@1764892800';
  headers.Sunset = 'Thu, 05 Dec 2030 00:00:00 GMT';
  headers.Link = `<http://127.0.0.1:${PORT}/v1/pets>; rel="successor-version"`;
  const id = readId(text);
  const { rows } =
    id === undefined
      ? { rows: [] }
      : await pool.query({
          name: 'get',
          text: `SELECT ${PET_COLUMNS} FROM pets WHERE id = $1`,
          values: [id],
        });
  if (rows[0] === undefined) throw new ApiError(404, 'not_found', `There is no pet with the id ${text}.`);
  return { status: 200, body: rows[0] };
}

async function create(text: string, headers: Headers) {
  const body = parseJson(text) as { name?: unknown; categoryId?: unknown; status?: unknown } | null;
  const { name, categoryId, status = 'available' } = body ?? {};
  const errors: string[] = [];
  if (typeof name !== 'string' || !isName(name)) errors.push('name must be a string of 1 to 200 characters');
  if (!Number.isSafeInteger(categoryId)) errors.push(`categoryId must be an integer from ${-MAX} to ${MAX}`);
  if (!STATUSES.includes(status as string)) errors.push(`status must be one of ${STATUSES.join(', ')}`);
  if (errors.length > 0) throw new ApiError(400, 'invalid_request', `${errors.join('; ')}.`);
  const { rows } = await pool.query<{ id: number }>({
    name: 'create',
    text: `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING ${PET_COLUMNS}`,
    values: [name, categoryId, status],
  });
  headers.Location = `/v1/pets/${rows[0]?.id}`;
  return { status: 201, body: rows[0] };
}

async function update(text: string, body: string) {
  const { categoryId, status } = (parseJson(body) as { categoryId?: unknown; status?: unknown } | null) ?? {};
  const errors: string[] = [];
  if (categoryId === undefined && status === undefined) errors.push('categoryId or status is required');
  if (categoryId !== undefined && !Number.isSafeInteger(categoryId))
    errors.push(`categoryId must be an integer from ${-MAX} to ${MAX}`);
  if (status !== undefined && !STATUSES.includes(status as string))
    errors.push(`status must be one of ${STATUSES.join(', ')}`);
  if (errors.length > 0) throw new ApiError(400, 'invalid_request', `${errors.join('; ')}.`);
  const id = readId(text);
  const change = status === undefined ? changeCategory : changeStatus;
  const pet = id === undefined ? undefined : await change(id, categoryId, status);
  if (pet === undefined) throw new ApiError(404, 'not_found', `There is no pet with the id ${text}.`);
  return { status: 200, body: pet };
}

async function changeCategory(id: number, categoryId: unknown): Promise<unknown> {
  const text = `UPDATE pets SET category_id = $2 WHERE id = $1 RETURNING ${PET_COLUMNS}`;
  return (await pool.query({ name: 'update', text, values: [id, categoryId] })).rows[0];
}
