import { createHash } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { createMiddleware } from 'hono/factory';
import { HTTPException } from 'hono/http-exception';
import { requestId } from 'hono/request-id';
import { validator } from 'hono/validator';
import { LRUCache } from 'lru-cache';
import { isWellFormedKey } from '../packages/platform/src/keys/format.js';
import { ApiError, BODY_LIMIT_BYTES, readId } from './baseline-input.js';
import { ANONYMOUS, countRequest, type Headers, type Limits } from './baseline-limits.js';
import {
  newOrder,
  newPet,
  orderChange,
  type PetChange,
  pageQuery,
  petChange,
  validate,
} from './hono-input.js';
import { changeOrder, changeStatus, placeOrder } from './hono-orders.js';
import { findKey, findPet, insertPet, listPets, listPetsByStatus, updatePet } from './hono-queries.js';

/*
 * The REST side of the measured requests with Hono and Drizzle, put together as their documentation shows, including
 * its advice on speed: prepared statements. The checks, limits, headers and errors are those of bench/baseline.ts.
 */

const PORT = Number(process.env.PORT);
const KEY_TTL_MS = 1_000;

type ApiKey = Limits & { readonly id: string };
const knownKeys = new LRUCache<string, { found: ApiKey | undefined }>({ max: 10_000, ttl: KEY_TTL_MS });

const admit = createMiddleware(async (c, next) => {
  const token = /^bearer +(\S.*)$/i.exec(c.req.header('Authorization') ?? '')?.[1];
  const apiKey = token === undefined ? undefined : await authenticate(token);
  const headers: Headers = {};
  try {
    await countRequest(apiKey?.id ?? c.env.incoming.socket.remoteAddress, apiKey ?? ANONYMOUS, headers);
  } finally {
    for (const [name, value] of Object.entries(headers)) c.header(name, value);
  }
  if (apiKey === undefined) {
    c.header('WWW-Authenticate', 'Bearer');
    const code = token === undefined ? 'missing_api_key' : 'invalid_api_key';
    throw new ApiError(401, code, 'The API key is not valid.');
  }
  await next();
});

async function authenticate(token: string): Promise<ApiKey | undefined> {
  const known = knownKeys.get(token);
  if (known !== undefined) return known.found;
  if (!isWellFormedKey(token, 'as_test_')) return undefined;
  const [found] = await findKey.execute({ hash: createHash('sha256').update(token).digest() });
  knownKeys.set(token, { found });
  return found;
}

const requireJson = createMiddleware((c, next) => {
  if (/^application\/json *(;|$)/i.test(c.req.header('Content-Type') ?? '')) return next();
  throw new ApiError(415, 'unsupported_media_type', 'The body must be application/json.');
});
const limitBody = bodyLimit({
  maxSize: BODY_LIMIT_BYTES,
  onError: () => {
    throw new ApiError(413, 'payload_too_large', 'The body is over 64 KiB.');
  },
});

async function changePet(id: number, { categoryId, status }: PetChange) {
  if (status !== undefined) return changeStatus(id, { categoryId, status });
  const [pet] = await updatePet.execute({ id, categoryId });
  return pet;
}

const app = new Hono().basePath('/v1');
app.use(requestId());
app.get('/pets', admit, validator('query', validate(pageQuery)), async (c) => {
  const { limit, cursor, status } = c.req.valid('query');
  const rows = await (status === undefined
    ? listPets.execute({ cursor, rows: limit + 1 })
    : listPetsByStatus.execute({ cursor, rows: limit + 1, status }));
  if (rows.length > limit) {
    rows.pop();
    const url = new URL(c.req.url);
    url.searchParams.set('cursor', String(rows.at(-1)?.id));
    c.header('Link', `<http://127.0.0.1:${PORT}/v1/pets${url.search}>; rel="next"`);
  }
  return c.json(rows);
});
app.post('/pets', admit, requireJson, limitBody, validator('json', validate(newPet)), async (c) => {
  const [pet] = await insertPet.execute(c.req.valid('json'));
  c.header('Location', `/v1/pets/${pet?.id}`);
  return c.json(pet, 201);
});
app.get('/pets/:petId', admit, async (c) => {
  c.header('Deprecation', '@1764892800');
  c.header('Sunset', 'Thu, 05 Dec 2030 00:00:00 GMT');
  c.header('Link', `<http://127.0.0.1:${PORT}/v1/pets>; rel="successor-version"`);
  const petId = c.req.param('petId');
  const id = readId(petId);
  const [pet] = id === undefined ? [] : await findPet.execute({ id });
  if (pet === undefined) throw new ApiError(404, 'not_found', `There is no pet with the id ${petId}.`);
  return c.json(pet);
});
app.patch(
  '/pets/:petId',
  admit,
  requireJson,
  limitBody,
  validator('json', validate(petChange)),
  async (c) => {
    const petId = c.req.param('petId');
    const id = readId(petId);
    const pet = id === undefined ? undefined : await changePet(id, c.req.valid('json'));
    if (pet === undefined) throw new ApiError(404, 'not_found', `There is no pet with the id ${petId}.`);
    return c.json(pet);
  },
);
app.post('/store/orders', admit, requireJson, limitBody, validator('json', validate(newOrder)), async (c) => {
  const order = await placeOrder(c.req.valid('json').petId);
  if (order === undefined) throw new ApiError(409, 'pet_not_available', 'The animal is not available.');
  c.header('Location', `/v1/store/orders/${order.id}`);
  return c.json(order, 201);
});
app.patch(
  '/store/orders/:orderId',
  admit,
  requireJson,
  limitBody,
  validator('json', validate(orderChange)),
  async (c) => {
    const orderId = c.req.param('orderId');
    const id = readId(orderId);
    const order = id === undefined ? undefined : await changeOrder(id, c.req.valid('json').status);
    if (order === undefined)
      throw new ApiError(404, 'not_found', `There is no order with the id ${orderId}.`);
    return c.json(order);
  },
);
for (const [path, allow] of [
  ['/pets', 'GET, POST, HEAD'],
  ['/pets/:petId', 'GET, PATCH, HEAD'],
  ['/store/orders', 'POST'],
  ['/store/orders/:orderId', 'PATCH'],
] as const) {
  app.all(path, (c) => {
    c.header('Allow', allow);
    throw new ApiError(405, 'method_not_allowed', `This path supports ${allow} only.`);
  });
}
app.notFound(() => {
  throw new ApiError(404, 'not_found', 'There is no such route.');
});
app.onError((error, c) => {
  const { status, code, message } = toApiError(error);
  if (status === 503) c.header('Retry-After', '1');
  return c.json({ code, message, status }, status as 400);
});

function toApiError(error: Error): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof HTTPException) return new ApiError(error.status, 'invalid_request', error.message);
  return new ApiError(503, 'service_unavailable', 'Try again.');
}

serve({ fetch: app.fetch, port: PORT, hostname: '127.0.0.1' });
process.on('SIGTERM', () => process.exit());
