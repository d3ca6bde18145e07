import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { isWellFormedKey } from '../src/keys/format.js';

/*
 * What the measured requests cost at least: the REST face by hand, with the same checks, limits, headers and errors, and
 * nothing between node:http, pg's named statements and one call of Redis. No log and no metrics.
 */

const MAX = Number.MAX_SAFE_INTEGER;
const STATUSES = ['available', 'pending', 'sold'];
const LOOKUP_TTL_MS = 1_000;
const BODY_LIMIT_BYTES = 64 * 1024;
const ANONYMOUS = { perMinute: 1e9, perDay: 1e9 };
const FIELDS = 'id, name, category_id AS "categoryId", status';

const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 10,
  connectionTimeoutMillis: 1_000,
  query_timeout: 1_500,
});
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const TAKE = `
local ban = redis.call('PTTL', KEYS[3])
local counts = redis.call('MGET', KEYS[1], KEYS[2])
local minute, day = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
local admitted = ban <= 0 and minute < tonumber(ARGV[1]) and day < tonumber(ARGV[2])
if admitted then
  minute, day = redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])
  if minute == 1 then redis.call('PEXPIRE', KEYS[1], 60000) end
  if day == 1 then redis.call('PEXPIRE', KEYS[2], 86400000) end
end
return { admitted and 1 or 0, minute, redis.call('PTTL', KEYS[1]), day, redis.call('PTTL', KEYS[2]), ban }`;
type Take = (...values: (string | number)[]) => Promise<number[]>;

interface Limits {
  readonly perMinute: number;
  readonly perDay: number;
}
type ApiKey = Limits & { readonly id: string };

class Fault extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const take = process.env.REDIS_URL ? takeInRedis(process.env.REDIS_URL) : takeInMemory();
const lookups = new LRUCache<string, { found: ApiKey | undefined }>({ max: 10_000, ttl: LOOKUP_TTL_MS });

const server = createServer((request, response) => {
  const headers: Record<string, string> = { 'X-Request-Id': randomUUID() };
  answer(request, headers).then(
    ({ status, body }) => send(response, status, headers, body),
    (error: unknown) => {
      const fault =
        error instanceof Fault ? error : new Fault(503, 'service_unavailable', 'Try again shortly.');
      const { status, code, message } = fault;
      if (status === 503) headers['Retry-After'] = '1';
      send(response, status, headers, { code, message, status });
    },
  );
});
server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit());

function send(response: ServerResponse, status: number, headers: Record<string, string>, value: unknown) {
  const body = JSON.stringify(value);
  headers['Content-Type'] = 'application/json';
  headers['Content-Length'] = String(Buffer.byteLength(body));
  response.writeHead(status, headers).end(body);
}

async function answer(request: IncomingMessage, headers: Record<string, string>) {
  const { method, url = '' } = request;
  const end = url.indexOf('?');
  const path = end < 0 ? url : url.slice(0, end);
  const isCollection = path === '/v1/pets';
  if (!isCollection && !path.startsWith('/v1/pets/'))
    throw new Fault(404, 'not_found', 'There is no such route.');
  if (method !== 'GET' && !(isCollection && method === 'POST')) {
    headers.Allow = isCollection ? 'GET, POST, HEAD' : 'GET, HEAD';
    throw new Fault(405, 'method_not_allowed', `This path answers ${headers.Allow} only.`);
  }
  await admit(request, headers);
  if (method === 'POST') return create(await readBody(request), headers);
  if (isCollection) return list(path, new URLSearchParams(end < 0 ? '' : url.slice(end)), headers);
  return get(decodeURIComponent(path.slice('/v1/pets/'.length)), headers);
}

async function admit(request: IncomingMessage, headers: Record<string, string>): Promise<void> {
  const token = /^bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1];
  const apiKey = token === undefined ? undefined : await authenticate(token);
  const limits = apiKey ?? ANONYMOUS;
  const id = apiKey?.id ?? request.socket.remoteAddress;
  const [admitted = 0, minute = 0, minuteLeft = 0, day = 0, dayLeft = 0, ban = 0] = await take(
    `floor:{${id}}:minute`,
    `floor:{${id}}:day`,
    `floor:{${id}}:ban`,
    limits.perMinute,
    limits.perDay,
  );
  const left = { minute: Math.max(0, limits.perMinute - minute), day: Math.max(0, limits.perDay - day) };
  const isMinute = left.minute <= left.day;
  const minuteSeconds = Math.ceil(minuteLeft / 1000);
  const daySeconds = Math.ceil(dayLeft / 1000);
  headers['X-RateLimit-Limit'] = String(isMinute ? limits.perMinute : limits.perDay);
  headers['X-RateLimit-Remaining'] = String(isMinute ? left.minute : left.day);
  headers['X-RateLimit-Reset'] = String(Math.ceil((Date.now() + (isMinute ? minuteLeft : dayLeft)) / 1000));
  headers['RateLimit-Policy'] = `"minute";q=${limits.perMinute};w=60, "day";q=${limits.perDay};w=86400`;
  headers.RateLimit = `"minute";r=${left.minute};t=${minuteSeconds}, "day";r=${left.day};t=${daySeconds}`;
  if (admitted === 0) {
    const seconds = Math.max(1, Math.ceil(ban / 1000), isMinute ? minuteSeconds : daySeconds);
    headers['Retry-After'] = String(seconds);
    throw new Fault(429, ban > 0 ? 'api_key_banned' : 'rate_limit_exceeded', `Try again in ${seconds} s.`);
  }
  if (apiKey !== undefined) return;
  headers['WWW-Authenticate'] = 'Bearer';
  throw new Fault(
    401,
    token === undefined ? 'missing_api_key' : 'invalid_api_key',
    'The API key is not valid.',
  );
}

async function authenticate(token: string): Promise<ApiKey | undefined> {
  const known = lookups.get(token);
  if (known !== undefined) return known.found;
  if (!isWellFormedKey(token, 'as_test_')) return undefined;
  const { rows } = await pool.query<ApiKey>({
    name: 'key',
    text: `SELECT id, per_minute AS "perMinute", per_day AS "perDay" FROM api_keys WHERE hash = $1
      AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    values: [createHash('sha256').update(token).digest()],
  });
  lookups.set(token, { found: rows[0] });
  return rows[0];
}

async function list(path: string, query: URLSearchParams, headers: Record<string, string>) {
  const limit = readInteger(query, 'limit', 1, 100) ?? 20;
  const cursor = readInteger(query, 'cursor', -MAX, MAX) ?? -MAX;
  const status = query.get('status');
  if (status !== null && !STATUSES.includes(status)) {
    throw new Fault(400, 'invalid_request', `status must be one of ${STATUSES.join(', ')}.`);
  }
  const { rows } = await pool.query<{ id: number }>(
    status === null
      ? {
          name: 'list',
          text: `SELECT ${FIELDS} FROM pets WHERE id > $1 ORDER BY id LIMIT $2`,
          values: [cursor, limit + 1],
        }
      : {
          name: 'list-by-status',
          text: `SELECT ${FIELDS} FROM pets WHERE (status, id) > ($3::pet_status, $1) AND status <= $3 ORDER BY status, id LIMIT $2`,
          values: [cursor, limit + 1, status],
        },
  );
  if (rows.length > limit) {
    rows.pop();
    query.set('cursor', String(rows.at(-1)?.id));
    headers.Link = `<http://127.0.0.1:${process.env.PORT}${path}?${query}>; rel="next"`;
  }
  return { status: 200, body: rows };
}

async function get(text: string, headers: Record<string, string>) {
  headers.Deprecation = '@1764892800';
  headers.Sunset = 'Thu, 05 Dec 2030 00:00:00 GMT';
  headers.Link = `<http://127.0.0.1:${process.env.PORT}/v1/pets>; rel="successor-version"`;
  const id = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  const { rows } = Number.isSafeInteger(id)
    ? await pool.query({ name: 'get', text: `SELECT ${FIELDS} FROM pets WHERE id = $1`, values: [id] })
    : { rows: [] };
  if (rows[0] === undefined) throw new Fault(404, 'not_found', `There is no pet with the id ${text}.`);
  return { status: 200, body: rows[0] };
}

async function create(text: string, headers: Record<string, string>) {
  const body = parse(text) as { name?: unknown; categoryId?: unknown; status?: unknown } | null;
  const { name, categoryId, status = 'available' } = body ?? {};
  const faults: string[] = [];
  if (typeof name !== 'string' || !isName(name)) faults.push('name must be a string of 1 to 200 characters');
  if (!Number.isSafeInteger(categoryId)) faults.push(`categoryId must be an integer from ${-MAX} to ${MAX}`);
  if (!STATUSES.includes(status as string)) faults.push(`status must be one of ${STATUSES.join(', ')}`);
  if (faults.length > 0) throw new Fault(400, 'invalid_request', `${faults.join('; ')}.`);
  const { rows } = await pool.query<{ id: number }>({
    name: 'create',
    text: `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING ${FIELDS}`,
    values: [name, categoryId, status],
  });
  headers.Location = `/v1/pets/${rows[0]?.id}`;
  return { status: 201, body: rows[0] };
}

function isName(name: string): boolean {
  const isLength = name.length > 0 && (name.length <= 200 || [...name].length <= 200);
  return (
    isLength && !/\p{Surrogate}/u.test(name) && !name.includes('\0') && !/^\p{White_Space}*$/u.test(name)
  );
}

async function readBody(request: IncomingMessage): Promise<string> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new Fault(415, 'unsupported_media_type', 'The body must be application/json.');
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > BODY_LIMIT_BYTES) throw new Fault(413, 'payload_too_large', 'The body is over 64 KiB.');
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Fault(400, 'invalid_request', 'The body is not valid JSON.');
  }
}

function readInteger(query: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^-?\d+$/.test(text) && value >= min && value <= max) return value;
  throw new Fault(400, 'invalid_request', `${name} must be an integer from ${min} to ${max}.`);
}

/** When Redis does not answer in time, the memory of this process decides. */
function takeInRedis(url: string): Take {
  const redis = new Redis(url, {
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    commandTimeout: 150,
  });
  redis.on('error', () => {});
  redis.defineCommand('take', { lua: TAKE, numberOfKeys: 3 });
  const ask = (redis as unknown as { take: Take }).take.bind(redis);
  const inMemory = takeInMemory();
  return (...values) => ask(...values).catch(() => inMemory(...values));
}

function takeInMemory(): Take {
  const windows = new Map<string | number, { count: number; endsAt: number }>();
  const read = (key: string | number, lengthMs: number) => {
    const window = windows.get(key);
    if (window !== undefined && window.endsAt > Date.now()) return window;
    const fresh = { count: 0, endsAt: Date.now() + lengthMs };
    windows.set(key, fresh);
    return fresh;
  };
  return async (minuteKey = '', dayKey = '', _banKey, perMinute, perDay) => {
    const minute = read(minuteKey, 60_000);
    const day = read(dayKey, 86_400_000);
    const admitted = minute.count < Number(perMinute) && day.count < Number(perDay);
    if (admitted) {
      minute.count += 1;
      day.count += 1;
    }
    const now = Date.now();
    return [Number(admitted), minute.count, minute.endsAt - now, day.count, day.endsAt - now, 0];
  };
}
