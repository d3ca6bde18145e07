import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { PrismaPg } from '@prisma/adapter-pg';
import { initTRPC, TRPCError } from '@trpc/server';
import { type CreateFastifyContextOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import {
  type CreateOpenApiFastifyPluginOptions,
  fastifyTRPCOpenApiPlugin,
  type OpenApiMeta,
} from 'trpc-to-openapi';
import { z } from 'zod';
import { type ApiKey, type Pet, PrismaClient } from '../src/database/generated/client.js';

/*
 * The whole service in one file. If you are new to this code base, start here and read from top to bottom.
 *
 * It uses the packages of the real service the way their own documentation shows, with nothing tuned: what a competent
 * team has after its first week. The real service consists of the same four parts. Each part below says where to find
 * it in src/ and what it does differently there, and `npm run bench -- --servers=service,idiomatic` measures both.
 *
 * Left out on purpose: orders, idempotency keys, scopes, bans, logs, metrics, a graceful shutdown, and the OpenAPI
 * document.
 */

const PORT = Number(process.env.PORT);
const BASE_URL = `http://127.0.0.1:${PORT}/v1`;

/*
 * 1. The data, in PostgreSQL through Prisma. In src/database, and in the store.ts of each resource.
 *
 * The real service uses Prisma too, except for the few statements of its hot path. They go through database/statement-pool.ts
 * as named statements, and lookups of the same event-loop tick share a statement.
 */
const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL ?? '' }),
});

/*
 * 2. The operations: one tRPC procedure each, which trpc-to-openapi serves as REST too. In src/pets, src/orders, and
 * src/router.ts.
 *
 * The real service defines its procedures in the same way, but calls them without tRPC's middleware runner, for speed.
 * And it keeps its input schemas from trpc-to-openapi (src/protocols/openapi-adapter.ts), because that library makes the
 * schemas that it serves coerce: after the first REST call, tRPC would accept "3" for 3 as well.
 */
const integer = z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER);
const status = z.enum(['available', 'pending', 'sold']);
const newPet = z.object({
  name: z.string().min(1).max(200),
  categoryId: integer,
  status: status.default('available'),
});
const pet = z.object({ id: integer, name: z.string(), categoryId: integer, status });
const pageQuery = z.object({
  limit: z.number().int().min(1).max(100).default(20),
  status: status.optional(),
  cursor: integer.optional(),
});

const createContext = ({ res }: CreateFastifyContextOptions) => ({ reply: res });
const t = initTRPC.meta<OpenApiMeta>().context<ReturnType<typeof createContext>>().create();

const appRouter = t.router({
  listPets: t.procedure
    .meta({ openapi: { method: 'GET', path: '/pets', protect: true } })
    .input(pageQuery.prefault({}))
    .output(z.array(pet))
    .query(async ({ ctx, input: { limit, status, cursor } }) => {
      // One row more than the page holds, to see whether another page follows.
      const rows = await prisma.pet.findMany({
        where: { ...(status && { status }), ...(cursor !== undefined && { id: { gt: cursor } }) },
        orderBy: { id: 'asc' },
        take: limit + 1,
      });
      const page = rows.slice(0, limit).map(toPet);
      if (rows.length > limit) {
        const next = new URLSearchParams({ limit: `${limit}`, ...(status && { status }) });
        next.set('cursor', `${page.at(-1)?.id}`);
        ctx.reply.header('Link', `<${BASE_URL}/pets?${next}>; rel="next"`);
      }
      return page;
    }),
  createPet: t.procedure
    .meta({ openapi: { method: 'POST', path: '/pets', protect: true } })
    .input(newPet)
    .output(pet)
    .mutation(async ({ ctx, input }) => {
      const created = toPet(await prisma.pet.create({ data: input }));
      ctx.reply.header('Location', `/v1/pets/${created.id}`);
      return created;
    }),
  getPet: t.procedure
    .meta({ openapi: { method: 'GET', path: '/pets/{petId}', protect: true, deprecated: true } })
    .input(z.object({ petId: integer }))
    .output(pet)
    .query(async ({ ctx, input: { petId } }) => {
      ctx.reply.headers({
        Deprecation: '@1764892800',
        Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
        Link: `<${BASE_URL}/pets>; rel="successor-version"`,
      });
      const found = await prisma.pet.findUnique({ where: { id: petId } });
      if (found === null) throw new TRPCError({ code: 'NOT_FOUND', message: `There is no pet ${petId}.` });
      return toPet(found);
    }),
});

/** Prisma reads a bigint column as a JavaScript bigint; the API has numbers, which the schema keeps within 2^53. */
function toPet({ id, name, categoryId, status }: Pet) {
  return { id: Number(id), name, categoryId: Number(categoryId), status };
}

/*
 * 3. Who is calling, and whether the limit allows it. In src/admission/admission.ts, src/keys, and src/limits.
 *
 * The real service decides in the same order, before it looks at the input. It rejects a malformed key by its checksum
 * without a query, trusts a key for a second after reading it, and counts in memory while Redis is unreachable.
 */
async function admit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  const token = request.headers.authorization?.replace(/^bearer +/i, '');
  const apiKey = token === undefined ? null : await findActiveKey(token);
  const id = apiKey?.id ?? request.ip;
  const isWithinLimits = await consume(id, countCalls(request.url), limitsOf(apiKey), reply);
  if (!isWithinLimits) return sendError(reply, 429, 'rate_limit_exceeded', 'The rate limit is used up.');
  if (apiKey !== null) return undefined;
  reply.header('WWW-Authenticate', 'Bearer');
  const code = token === undefined ? 'missing_api_key' : 'invalid_api_key';
  return sendError(reply, 401, code, 'Send a valid API key as: Authorization: Bearer <API_KEY>');
}

async function findActiveKey(token: string): Promise<ApiKey | null> {
  const hash = new Uint8Array(createHash('sha256').update(token).digest());
  const apiKey = await prisma.apiKey.findUnique({ where: { hash } });
  const isExpired = apiKey?.expiresAt ? apiKey.expiresAt <= new Date() : false;
  return apiKey === null || apiKey.revokedAt !== null || isExpired ? null : apiKey;
}

/** A tRPC batch counts for each of its calls, which its path lists: /trpc/getPet,getPet. */
function countCalls(url: string): number {
  return url.startsWith('/trpc/') ? (url.split('?', 1)[0] ?? '').split(',').length : 1;
}

type Limits = readonly [perMinute: number, perDay: number];
const FREE = [60, 1_000] as const;
const PLANS: Readonly<Record<string, Limits>> = {
  free: FREE,
  pro: [300, 10_000],
  business: [1_000, 100_000],
};
const ANONYMOUS = [Number(process.env.ANONYMOUS_PER_MINUTE ?? 300), Number.MAX_SAFE_INTEGER] as const;

function limitsOf(apiKey: ApiKey | null): Limits {
  if (apiKey === null) return ANONYMOUS;
  return apiKey.plan === 'enterprise'
    ? [apiKey.perMinute ?? 0, apiKey.perDay ?? 0]
    : (PLANS[apiKey.plan] ?? FREE);
}

const redis = process.env.REDIS_URL
  ? new Redis(process.env.REDIS_URL, { enableOfflineQueue: false })
  : undefined;
if (redis !== undefined) await once(redis, 'ready');
const limiters = new Map<string, RateLimiterAbstract>();

/** A limiter of this library has a fixed number of points, and every enterprise key may have its own. */
function limiterFor(points: number, duration: number): RateLimiterAbstract {
  const keyPrefix = `idiomatic:${points}:${duration}`;
  const options = { keyPrefix, points, duration };
  const limiter =
    limiters.get(keyPrefix) ??
    (redis ? new RateLimiterRedis({ storeClient: redis, ...options }) : new RateLimiterMemory(options));
  limiters.set(keyPrefix, limiter);
  return limiter;
}

/**
 * Counts the calls in both windows, describes the tighter one in headers, and returns whether both had room. A window
 * counts the calls even when the other one is full. The real service decides on both in one Lua script, which counts
 * all or nothing, and sends it once for all requests of a key in the same event-loop tick.
 */
async function consume(id: string, calls: number, limits: Limits, reply: FastifyReply): Promise<boolean> {
  const perMinute = limiterFor(limits[0], 60);
  const perDay = limiterFor(limits[1], 86_400);
  try {
    const [minute, day] = await Promise.all([perMinute.consume(id, calls), perDay.consume(id, calls)]);
    const isMinute = minute.remainingPoints <= day.remainingPoints;
    setLimitHeaders(reply, isMinute ? perMinute : perDay, isMinute ? minute : day);
    return true;
  } catch (denial) {
    if (!(denial instanceof RateLimiterRes)) throw denial;
    setLimitHeaders(reply, denial.msBeforeNext > 60_000 ? perDay : perMinute, denial);
    reply.header('Retry-After', Math.ceil(denial.msBeforeNext / 1000));
    return false;
  }
}

function setLimitHeaders(reply: FastifyReply, { points }: RateLimiterAbstract, result: RateLimiterRes) {
  reply.headers({
    'X-RateLimit-Limit': points,
    'X-RateLimit-Remaining': result.remainingPoints,
    'X-RateLimit-Reset': Math.ceil((Date.now() + result.msBeforeNext) / 1000),
  });
}

function sendError(reply: FastifyReply, status: number, code: string, message: string): FastifyReply {
  return reply.code(status).send({ code, message, status });
}

/*
 * 4. The server. In src/app.ts; src/service.ts puts the parts together and src/main.ts runs them.
 *
 * The real service has a Fastify route for every operation and calls the two libraries from there (src/http), so that
 * routing, body limits, errors, logs and metrics are the same for both protocols.
 */
const app = Fastify({ routerOptions: { maxParamLength: 5000 } });
app.addHook('onRequest', admit);
await app.register(fastifyTRPCPlugin, { prefix: '/trpc', trpcOptions: { router: appRouter, createContext } });
await app.register(fastifyTRPCOpenApiPlugin, {
  basePath: '/v1',
  router: appRouter,
  createContext,
  responseMeta: ({ paths, errors }) =>
    paths?.[0] === 'createPet' && errors.length === 0 ? { status: 201 } : {},
} satisfies CreateOpenApiFastifyPluginOptions<typeof appRouter>);
await app.listen({ port: PORT });
process.on('SIGTERM', () => process.exit());
