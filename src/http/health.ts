import type { FastifyInstance } from 'fastify';
import type { Limiter } from '../limits/limiter.js';

export interface HealthOptions {
  /** Resolves when the database answers and its schema is the one that this service was built for. */
  readonly checkDatabase: () => Promise<void>;
  readonly limiter: Limiter;
}

/**
 * Probes for whoever runs the service: is the process alive, and can it serve. Neither needs a key. A service without
 * its Redis still serves, so that it stays ready, as `degraded`.
 */
export function registerHealth(app: FastifyInstance, { checkDatabase, limiter }: HealthOptions): void {
  app.get('/health/live', async () => ({ status: 'ok' }));

  app.get('/health/ready', async (request, reply) => {
    try {
      await checkDatabase();
      return {
        status: limiter.state === 'degraded' ? 'degraded' : 'ok',
        database: 'ok',
        limits: limiter.state,
      };
    } catch (error) {
      request.log.warn({ err: error }, 'not ready: the database cannot be used');
      return reply.code(503).send({ status: 'unavailable', database: 'unavailable', limits: limiter.state });
    }
  });
}
