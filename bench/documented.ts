import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { PrismaPg } from '@prisma/adapter-pg';
import { initTRPC, TRPCError } from '@trpc/server';
import { type CreateFastifyContextOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { fastifyTRPCOpenApiPlugin, type OpenApiMeta } from 'trpc-to-openapi';
import { z } from 'zod';
import { type Pet, PrismaClient } from '../src/database/generated/client.js';

/*
 * The same operations from the same packages, put together as their documentation shows: what a team has that reads the
 * READMEs and tunes nothing. Neither made slow on purpose nor complete: no idempotency, no bans, and, like the examples
 * that it follows, no log and no metrics.
 */

const PORT = Number(process.env.PORT);
const BASE_URL = `http://127.0.0.1:${PORT}/v1`;
const MAX = Number.MAX_SAFE_INTEGER;

const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL ?? '' }),
});
const redis = process.env.REDIS_URL
  ? new Redis(process.env.REDIS_URL, { enableOfflineQueue: false })
  : undefined;
if (redis !== undefined) await once(redis, 'ready');

const petStatus = z.enum(['available', 'pending', 'sold']);
const integer = z.number().int().min(-MAX).max(MAX);
const newPet = z.object({
  name: z.string().min(1).max(200),
  categoryId: integer,
  status: petStatus.default('available'),
});
const pet = z.object({ id: integer, name: z.string(), categoryId: integer, status: petStatus });

function createContext({ res }: CreateFastifyContextOptions) {
  return { reply: res };
}

const t = initTRPC
  .meta<OpenApiMeta>()
  .context<ReturnType<typeof createContext>>()
  .create({ errorFormatter: ({ shape }) => ({ ...shape, status: shape.data.httpStatus }) });

const appRouter = t.router({
  listPets: t.procedure
    .meta({ openapi: { method: 'GET', path: '/pets', protect: true } })
    .input(
      z
        .object({
          limit: z.number().int().min(1).max(100).default(20),
          status: petStatus.optional(),
          cursor: integer.optional(),
        })
        .prefault({}),
    )
    .output(z.array(pet))
    .query(async ({ ctx, input: { limit, status, cursor } }) => {
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

function toPet({ id, name, categoryId, status }: Pet) {
  return { id: Number(id), name, categoryId: Number(categoryId), status };
}

const limiters = new Map<string, RateLimiterRedis | RateLimiterMemory>();

/** Enterprise keys bring limits of their own, and a limiter has one number of points. */
function limiterOf(name: string, points: number, duration: number) {
  const keyPrefix = `documented:${name}:${points}`;
  const limiter =
    limiters.get(keyPrefix) ??
    (redis
      ? new RateLimiterRedis({ storeClient: redis, keyPrefix, points, duration })
      : new RateLimiterMemory({ keyPrefix, points, duration }));
  limiters.set(keyPrefix, limiter);
  return limiter;
}

const PLANS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
} as const;
const ANONYMOUS = { perMinute: Number(process.env.ANONYMOUS_PER_MINUTE ?? 300), perDay: MAX };

async function guard(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  const token = request.headers.authorization?.replace(/^bearer +/i, '');
  const apiKey = token === undefined ? null : await findApiKey(token);
  const limits =
    apiKey === null
      ? ANONYMOUS
      : apiKey.plan === 'enterprise'
        ? { perMinute: apiKey.perMinute ?? 0, perDay: apiKey.perDay ?? 0 }
        : PLANS[apiKey.plan];
  const isAdmitted = await takeFrom(limits, apiKey?.id ?? request.ip, countCalls(request.url), reply);
  if (!isAdmitted) return refuse(reply, 429, 'rate_limit_exceeded', 'The rate limit is used up.');
  if (apiKey !== null) return undefined;
  reply.header('WWW-Authenticate', 'Bearer');
  return token === undefined
    ? refuse(reply, 401, 'missing_api_key', 'Send your API key as: Authorization: Bearer <API_KEY>')
    : refuse(reply, 401, 'invalid_api_key', 'The API key is not valid.');
}

async function findApiKey(token: string) {
  const hash = new Uint8Array(createHash('sha256').update(token).digest());
  const apiKey = await prisma.apiKey.findUnique({ where: { hash } });
  const isInForce =
    apiKey !== null &&
    apiKey.revokedAt === null &&
    (apiKey.expiresAt === null || apiKey.expiresAt > new Date());
  return isInForce ? apiKey : null;
}

/** A tRPC batch counts for each of its calls. */
function countCalls(url: string): number {
  return url.startsWith('/trpc/') ? (url.split('?', 1)[0] ?? '').split(',').length : 1;
}

/** Takes from both windows and says what is left of the tighter one; returns whether both had room. */
async function takeFrom(
  limits: { perMinute: number; perDay: number },
  id: string,
  calls: number,
  reply: FastifyReply,
): Promise<boolean> {
  const minute = limiterOf('minute', limits.perMinute, 60);
  const day = limiterOf('day', limits.perDay, 86_400);
  try {
    const [ofMinute, ofDay] = await Promise.all([minute.consume(id, calls), day.consume(id, calls)]);
    const isMinute = ofMinute.remainingPoints <= ofDay.remainingPoints;
    describeLimit(reply, isMinute ? limits.perMinute : limits.perDay, isMinute ? ofMinute : ofDay);
    return true;
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    const isDay = refusal.msBeforeNext > 60_000;
    describeLimit(reply, isDay ? limits.perDay : limits.perMinute, refusal);
    reply.header('Retry-After', Math.ceil(refusal.msBeforeNext / 1000));
    return false;
  }
}

function describeLimit(
  reply: FastifyReply,
  limit: number,
  { remainingPoints, msBeforeNext }: RateLimiterRes,
) {
  reply.headers({
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': remainingPoints,
    'X-RateLimit-Reset': Math.ceil((Date.now() + msBeforeNext) / 1000),
  });
}

function refuse(reply: FastifyReply, status: number, code: string, message: string): FastifyReply {
  return reply.code(status).send({ code, message, status });
}

const app = Fastify({ routerOptions: { maxParamLength: 5000 } });
app.addHook('onRequest', guard);
app.setNotFoundHandler((_request, reply) => refuse(reply, 404, 'not_found', 'There is no such route.'));
await app.register(fastifyTRPCPlugin, {
  prefix: '/trpc',
  trpcOptions: { router: appRouter, createContext },
});
await app.register(fastifyTRPCOpenApiPlugin, {
  basePath: '/v1',
  router: appRouter,
  createContext,
  responseMeta: ({
    paths,
    errors,
  }: {
    paths?: readonly string[] | undefined;
    errors: readonly TRPCError[];
  }) => (paths?.[0] === 'createPet' && errors.length === 0 ? { status: 201 } : {}),
});
await app.listen({ port: PORT });
process.on('SIGTERM', () => process.exit());
